"""A scratch directory is new, this user's alone, and what killed JVMs have left goes; nothing else does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.spark.scratch import new_scratch


def own(within: Path) -> Path:
    return within / f"headrace-{os.geteuid()}"


def leave(parent: Path, name: str = "jvm-abcd1234") -> Path:
    """Leaves what a JVM that was killed leaves."""
    left = parent / name
    left.mkdir(mode=0o700, parents=True)
    (left / "lock").touch()
    (left / "library.so").touch()
    return left


def test_scratch_is_private_and_locked(tmp_path: Path) -> None:
    scratch = new_scratch(tmp_path)
    assert scratch.path.parent == own(tmp_path)
    for directory in (scratch.path, scratch.path.parent):
        assert directory.stat().st_mode & 0o777 == 0o700
    other = new_scratch(tmp_path)
    assert scratch.path.exists()
    scratch.release()
    other.release()
    new_scratch(tmp_path).release()
    assert not scratch.path.exists()
    assert not other.path.exists()


def test_left_directories_are_deleted(tmp_path: Path) -> None:
    own(tmp_path).mkdir(mode=0o700)
    left = leave(own(tmp_path))
    new_scratch(tmp_path).release()
    assert not left.exists()


def test_what_has_another_name_stays(tmp_path: Path) -> None:
    own(tmp_path).mkdir(mode=0o700)
    others = [leave(own(tmp_path), name) for name in ("work", "mine", "jvm-", "jvm-UPPERCASE", "jvm-abcd12345")]
    new_scratch(tmp_path).release()
    assert all((other / "library.so").exists() for other in others)


def test_directory_behind_a_link_stays(tmp_path: Path) -> None:
    own(tmp_path).mkdir(mode=0o700)
    precious = leave(tmp_path / "home", "precious")
    (own(tmp_path) / "jvm-abcd1234").symlink_to(precious)
    new_scratch(tmp_path).release()
    assert (precious / "library.so").exists()


def test_lock_behind_a_link_is_not_followed(tmp_path: Path) -> None:
    own(tmp_path).mkdir(mode=0o700)
    left = leave(own(tmp_path))
    (left / "lock").unlink()
    (left / "lock").symlink_to(left / "library.so")
    new_scratch(tmp_path).release()
    assert left.exists()


def test_links_inside_are_deleted_and_not_followed(tmp_path: Path) -> None:
    own(tmp_path).mkdir(mode=0o700)
    precious = leave(tmp_path / "home", "precious")
    left = leave(own(tmp_path))
    (left / "link").symlink_to(precious)
    new_scratch(tmp_path).release()
    assert not left.exists()
    assert (precious / "library.so").exists()


def test_parent_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    left = leave(elsewhere)
    elsewhere.chmod(0o700)
    own(tmp_path).symlink_to(elsewhere)
    scratch = new_scratch(tmp_path)
    scratch.release()
    assert (left / "library.so").exists()
    assert scratch.path.parent.parent == tmp_path
    assert not scratch.path.is_relative_to(own(tmp_path))


def test_parent_that_others_may_enter_is_not_used(tmp_path: Path) -> None:
    left = leave(own(tmp_path))
    own(tmp_path).chmod(0o777)
    scratch = new_scratch(tmp_path)
    scratch.release()
    assert left.exists()
    assert not scratch.path.is_relative_to(own(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")
def test_what_another_user_has_made_is_not_used(tmp_path: Path) -> None:
    left = leave(own(tmp_path))
    own(tmp_path).chmod(0o700)
    os.chown(left, 12345, -1)
    new_scratch(tmp_path).release()
    assert left.exists()
    os.chown(own(tmp_path), 12345, -1)
    scratch = new_scratch(tmp_path)
    scratch.release()
    assert not scratch.path.is_relative_to(own(tmp_path))
