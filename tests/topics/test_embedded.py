"""Particularities of the embedded log: a directory, a map that grows, rules for processes and threads."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import lmdb
import pytest

from headrace.errors import BatchError, ConfigError, FencedError, LogError
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.embedded.journal import EmbeddedJournal
from headrace.topics.journal import JournalState, Receipt, TaskRecord
from headrace.topics.log import Output
from tests.topics.kit import clean_all, commit, everything, keyed, record


def test_log_is_there_after_reopening(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path / "log") as log:
        log.create_topic("t", partitions=2, configs={"retention.ms": 5})
        log.append("t", [record("a", "1", partition=1)])
        commit(log, {"t": [record("b", "2", partition=1)]}, positions={("in", 0): 3})
    with EmbeddedLog(tmp_path / "log") as log:
        assert log.describe_topic("t").configs == {"retention.ms": "5"}
        assert keyed(everything(log, "t", 1)) == [(0, "a", "1"), (1, "b", "2")]
        assert log.positions("app") == {("in", 0): 3}


def test_two_handles_in_one_process_share_the_log(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path / "log") as first:
        first.create_topic("t")
        with EmbeddedLog(tmp_path / "." / "log") as second:
            second.append("t", [record("a", "1")])
        assert keyed(everything(first, "t")) == [(0, "a", "1")]
        with pytest.raises(LogError, match="open in this process with sync=commit"):
            EmbeddedLog(tmp_path / "log", sync="none")


def test_handle_pickles(embedded: EmbeddedLog) -> None:
    embedded.create_topic("t")
    with pickle.loads(pickle.dumps(embedded)) as copy:
        copy.append("t", [record("a", "1")])
    assert len(everything(embedded, "t")) == 1


# Newer Pythons warn about forking beside threads, which is what this test is about.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_opens_the_log_anew(embedded: EmbeddedLog) -> None:
    embedded.create_topic("t")
    embedded.append("t", [record("a", "1")])
    child = os.fork()
    if not child:
        code = 1
        try:
            embedded.append("t", [record("b", "2")])
            code = 0 if len(everything(embedded, "t")) == 2 else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    embedded.append("t", [record("c", "3")])
    assert [value for _, _, value in keyed(everything(embedded, "t"))] == ["1", "2", "3"]


def test_map_grows_under_reading_and_writing_threads(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path / "log", map_size=1 << 16, sync="none") as log:
        log.create_topic("t", partitions=3)
        errors: list[Exception] = []
        over = threading.Event()

        def write(partition: int) -> None:
            try:
                for _ in range(40):
                    log.append("t", [record("k", "x" * 1000, partition=partition) for _ in range(20)])
            except Exception as error:
                errors.append(error)

        def read() -> None:
            try:
                while not over.is_set():
                    for partition in range(3):
                        offsets = [raw[0] for raw in everything(log, "t", partition)]
                        assert offsets == list(range(len(offsets)))
            except Exception as error:
                errors.append(error)

        reader = threading.Thread(target=read)
        writers = [threading.Thread(target=write, args=(partition,)) for partition in range(3)]
        for thread in (reader, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        over.set()
        reader.join()
        assert errors == []
        assert set(log.end_offsets([("t", 0), ("t", 1), ("t", 2)]).values()) == {800}


def fill(log: EmbeddedLog) -> None:
    for n in range(10_000):
        log.append("t", [record("k", "x" * 1000, n)])


def test_limit_is_kept_and_said(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path / "log", map_size=1 << 16, max_size=1 << 20) as log:
        log.create_topic("t", configs={"retention.ms": 1})
        with pytest.raises(LogError, match=r"has reached its limit, max_size=1048576 bytes; nothing of this write"):
            fill(log)
        count = log.end_offsets([("t", 0)])["t", 0]
        assert [raw[0] for raw in everything(log, "t")] == list(range(count))
        log.clean(now_ms=1 << 40)
        assert log.append("t", [record("k", "x", 1 << 41)]) == {0: (count, count + 1)}
        assert (tmp_path / "log" / "data.mdb").stat().st_size < 2 << 20


@pytest.mark.parametrize("content", [b"not a database", b""])
def test_directory_of_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.mdb").write_bytes(content * 1000)
    if content:
        with pytest.raises(LogError, match=r"cannot be opened: .*choose another directory"):
            EmbeddedLog(tmp_path)
    else:
        EmbeddedLog(tmp_path).close()


def test_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("hello")
    with pytest.raises(LogError, match=r"cannot be opened: .*File exists"):
        EmbeddedLog(tmp_path / "log")


def test_unknown_sync_policy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must be 'commit' or 'none'; found str 'sometimes'"):
        EmbeddedLog(tmp_path, sync="sometimes")  # type: ignore[arg-type]


def staged(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.rglob("*.staged"))


BIG = [record("k", "x" * 1000) for _ in range(600)]


def stage(log: EmbeddedLog, journal: EmbeddedJournal, batch_id: int, task: str, outputs: list[Output]) -> Receipt:
    """Runs a task of a batch, which writes to ``out``."""
    part = log.task_journal("app", journal.incarnation, task, [])
    part.open()
    return part.commit(TaskRecord(batch_id, f"{task}/{batch_id}", [], None, b""), [("out", outputs)], [])


def test_a_batch_is_published_in_the_order_of_its_receipts(embedded: EmbeddedLog) -> None:
    embedded.create_topic("out")
    journal = embedded.open_journal("app", [])
    tasks = ("10_0", "2_0", "0_0")
    journal.commit(0, [stage(embedded, journal, 0, task, [record("k", task)]) for task in tasks])
    assert [value for _, _, value in keyed(everything(embedded, "out"))] == list(tasks)


def test_outputs_are_seen_only_after_the_commit_of_their_batch(embedded: EmbeddedLog) -> None:
    embedded.create_topic("out")
    journal = embedded.open_journal("app", [])
    receipts = [stage(embedded, journal, 0, "0_0", [record("k", "1")]), stage(embedded, journal, 0, "0_1", BIG)]
    assert everything(embedded, "out") == []
    assert embedded.last_batch("app") is None
    done = journal.commit(0, receipts)
    assert done.written == {("out", 0): (0, 601)}
    assert [raw[0] for raw in everything(embedded, "out")] == list(range(601))


def test_staging_files_go_with_the_commit_and_orphans_with_the_next_driver(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path) as log:
        log.create_topic("out")
        journal = log.open_journal("app", [])
        # The attempt that was given up leaves a file behind.
        stage(log, journal, 0, "0_0", BIG)
        receipt = stage(log, journal, 0, "0_0", BIG)
        early = stage(log, journal, 1, "0_1", BIG)
        assert len(staged(tmp_path)) == 3
        journal.commit(0, [receipt])
        assert staged(tmp_path) == [early.file]
    with EmbeddedLog(tmp_path) as log:
        log.open_journal("other", [])
        assert staged(tmp_path) == [early.file]
        log.open_journal("app", [])
        assert staged(tmp_path) == []
        assert len(everything(log, "out")) == len(BIG)


def test_files_of_a_later_driver_are_left_alone(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path) as log:
        log.create_topic("out")
        old = log.open_journal("app", [])
        late = stage(log, old, 0, "0_0", BIG)
        new = log.open_journal("app", [])
        receipt = stage(log, new, 0, "0_0", BIG)
        with pytest.raises(FencedError):
            old.commit(0, [late])
        assert staged(tmp_path) == [receipt.file]
        assert new.commit(0, [receipt]).records == len(BIG)
        assert staged(tmp_path) == []


def test_damaged_or_missing_staging_file_commits_nothing(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path) as log:
        log.create_topic("out")
        journal = log.open_journal("app", [])
        receipt = stage(log, journal, 0, "0_0", BIG)
        file = next(tmp_path.rglob("*.staged"))
        data = file.read_bytes()
        for damaged in (data[:-10], data[:5], data + b"more of it", data[:1000] + b"?" + data[1001:]):
            file.write_bytes(damaged)
            with pytest.raises((LogError, BatchError), match=r"not complete|damaged"):
                journal.commit(0, [receipt])
            assert everything(log, "out") == []
        file.unlink()
        with pytest.raises(LogError, match=r"task 0_0 in batch 0 .* nothing of the batch was committed; run it again"):
            journal.commit(0, [receipt])
        assert log.last_batch("app") is None


def test_reset_leaves_no_staged_files_and_numbers_of_drivers_go_on(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path) as log:
        log.create_topic("out")
        journal = log.open_journal("app", [])
        journal.commit(0, [stage(log, journal, 0, "0_0", [record("k", "1")])])
        receipt = stage(log, journal, 1, "0_0", BIG)
        log.reset_application("app")
        assert staged(tmp_path) == []
        assert log.applications() == []
        with pytest.raises(FencedError, match="another instance has taken over"):
            journal.commit(1, [receipt])
        again = log.open_journal("app", [])
        assert again.incarnation > journal.incarnation
        assert again.state == JournalState()
        assert log.task_journal("app", again.incarnation, "0_0", []).open().record is None


def test_an_application_begins_where_it_was_told_to(embedded: EmbeddedLog) -> None:
    embedded.begin_at("app", {("in", 0): 4, ("in", 1): 7})
    assert embedded.applications() == ["app"]
    assert embedded.open_journal("app", []).state.positions == {("in", 0): 4, ("in", 1): 7}
    embedded.begin_at("app", {("in", 0): 5})
    assert embedded.positions("app") == {("in", 0): 5}
    commit(embedded, {}, positions={("in", 0): 6})
    with pytest.raises(BatchError, match="has committed batch 0, so it goes on behind that; reset it"):
        embedded.begin_at("app", {("in", 0): 0})
    assert embedded.positions("app") == {("in", 0): 6}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_killed_reader_does_not_keep_pages(embedded: EmbeddedLog) -> None:
    embedded.create_topic("t", configs={"retention.ms": 1})
    child = os.fork()
    if not child:
        embedded._environment.read(lambda _: os._exit(0))
    os.waitpid(child, 0)
    sizes = []
    for n in range(30):
        embedded.append("t", [record("k", "x" * 1000, n) for _ in range(500)])
        embedded.clean(now_ms=1 << 40)
        sizes.append(embedded.used_bytes())
    assert sizes[-1] <= 1.5 * sizes[5]


def test_every_damaged_byte_is_refused_with_the_place_of_the_log(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    with EmbeddedLog(directory, sync="none") as log:
        log.create_topic("t")
        log.append("t", [record("key", "value", 5), record("key", "another", 6)])
        commit(log, {"t": [record("key", "third", 7)]}, positions={("t", 0): 2})
        read_all(log)
    with lmdb.open(str(directory)) as environment, environment.begin() as transaction:
        # The number of the next topic is read by who makes one; the name of the layout is compared at the start.
        entries = [(key, value) for key, value in transaction.cursor() if key[:1] not in {b"N", b"F"}]
    assert {key[:1] for key, _ in entries} == {b"T", b"P", b"B", b"A", b"R"}
    for key, value in entries:
        for place in range(len(value)):
            damaged = bytearray(value)
            damaged[place] ^= 1
            put(directory, key, bytes(damaged))
            with EmbeddedLog(directory, sync="none") as log, pytest.raises(LogError, match="damaged") as caught:
                read_all(log)
            assert str(directory) in str(caught.value)
        put(directory, key, value)
    with EmbeddedLog(directory, sync="none") as log:
        read_all(log)


def test_damaged_numbers_of_topics_are_refused(tmp_path: Path) -> None:
    """A number that is given twice would make one topic of two."""
    directory = tmp_path / "log"
    with EmbeddedLog(directory, sync="none") as log:
        log.create_topic("t")
        log.create_topic("deleted")
        log.delete_topic("deleted")
    with lmdb.open(str(directory)) as environment, environment.begin() as transaction:
        entries = {key[:1]: (key, value) for key, value in transaction.cursor()}
    uses: dict[bytes, Callable[[EmbeddedLog], object]] = {
        b"N": lambda log: log.create_topic("another"),
        b"D": lambda log: log.clean(),
    }
    for kind, use in uses.items():
        key, value = entries[kind]
        for place in range(len(value)):
            damaged = bytearray(value)
            damaged[place] ^= 1
            put(directory, key, bytes(damaged))
            with EmbeddedLog(directory, sync="none") as log, pytest.raises(LogError, match="damaged"):
                use(log)
        put(directory, key, value)
    with EmbeddedLog(directory, sync="none") as log:
        log.create_topic("another")
        clean_all(log, 0)
        assert {log.topic_id(topic) for topic in log.topics()} == {"1", "3"}


def put(directory: Path, key: bytes, value: bytes) -> None:
    with lmdb.open(str(directory), sync=False) as environment, environment.begin(write=True) as transaction:
        transaction.put(key, value)


def read_all(log: EmbeddedLog) -> None:
    for topic in log.topics():
        everything(log, topic)
    log.positions("app")
    with closing(log.task_journal("app", 1, "0_0", [])) as part:
        part.read_record()
