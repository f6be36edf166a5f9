"""Directories of an application, and the topic log that it reads and writes."""

from __future__ import annotations

import os
from errno import EACCES, EDQUOT, EFBIG, ENOSPC, EPERM, EROFS
from pathlib import Path

from headrace.config import DEFAULT_STATE_DIR, StreamsConfig
from headrace.errors import ConfigError, StateDirectoryError
from headrace.private_directory import close_to_others, make_directories, make_private
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.journal import DurableLog

_FULL = frozenset({ENOSPC, EFBIG, EDQUOT})
_FORBIDDEN = frozenset({EACCES, EPERM, EROFS})


def log_directory(config: StreamsConfig) -> Path:
    """Returns where the embedded log is.

    >>> str(log_directory(StreamsConfig(state_dir="/data")))
    '/data/log'
    """
    if config.log_dir is None:
        return _absolute("state_dir", config.state_dir) / "log"
    return _absolute("log_dir", config.log_dir)


def application_directory(config: StreamsConfig) -> Path:
    """Returns the directory of the application, with its lock and working copies.

    >>> str(application_directory(StreamsConfig(application_id="orders", state_dir="/data")))
    '/data/orders'
    >>> application_directory(StreamsConfig(application_id="log", state_dir="/data"))
    Traceback (most recent call last):
    ...
    headrace.errors.ConfigError: application_id 'log' names the folder '/data/log', where the log is; choose another \
application_id, or set log_dir
    """
    name = config.application_id
    if name in (".", ".."):
        message = f"application_id names a folder of state_dir, so it cannot be '{name}'; choose another application_id"
        raise ConfigError(message)
    directory = _absolute("state_dir", config.state_dir) / name
    if directory == log_directory(config):
        message = (
            f"application_id '{name}' names the folder '{directory}', where the log is; "
            "choose another application_id, or set log_dir"
        )
        raise ConfigError(message)
    return directory


def open_log(config: StreamsConfig) -> DurableLog:
    """Opens the log that the configuration names; close it after use."""
    check_default_directory(config)
    if config.bootstrap_servers is not None:
        # Imported here: the client of Kafka is optional.
        from headrace.topics.kafka import KafkaLog

        return KafkaLog.of(config)
    return EmbeddedLog(log_directory(config), sync="none" if config.log_sync == "none" else "commit")


def check_default_directory(config: StreamsConfig) -> None:
    """Creates the default of ``state_dir`` for this user alone; raises if another user owns it.

    It lies in the directory for temporary files, where everybody may make anything.
    """
    if os.fspath(config.state_dir) != DEFAULT_STATE_DIR:
        return
    directory = Path(DEFAULT_STATE_DIR).parent
    try:
        make_private(directory)
    except OSError as error:
        raise _cannot_make(directory, error) from error


def make_directory(directory: Path) -> None:
    """Creates a missing directory that only this user can enter; raises if others can write to it.

    Spark's temporary files, which have code in them, lie below the directory of an application.
    """
    try:
        make_directories(directory)
        close_to_others(directory)
    except OSError as error:
        raise _cannot_make(directory, error) from error


def _cannot_make(directory: Path, error: OSError) -> StateDirectoryError:
    if error.errno is not None:
        return unusable(directory, error, "made")
    # It is there, and not to be trusted.
    return StateDirectoryError(f"{error}; or set state_dir to a directory of your own")


def unusable(path: Path, error: OSError, what: str) -> StateDirectoryError:
    """Returns the error to raise when something in the state directory cannot be made, read, written or removed."""
    if error.errno in _FULL:
        remedy = "the disk is full, or the process may not write more: make room, or raise the limit, and start again"
    elif error.errno in _FORBIDDEN:
        remedy = "set state_dir to a directory that this user may write"
    else:
        remedy = "look at the directory and the disk, or set state_dir to another one"
    return StateDirectoryError(f"'{path}' cannot be {what}: {error.strerror or error}; {remedy}")


def _absolute(setting: str, path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    if "://" in text:
        message = f"{setting} must be a path of a file system; found '{text}'; mount it, and give the path"
        raise ConfigError(message)
    # Executors have another working directory; and two spellings of one directory must be one here.
    return Path(text).expanduser().resolve()
