"""RocksDB: one process, options by store, one bound on memory, metrics."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from headrace import StreamsBuilder, StreamsConfig, TopologyTestDriver
from headrace.dsl import Materialized
from headrace.errors import ConfigError, ProcessorStateError
from headrace.state import Changes, Stores
from headrace.state.engines.environment import OWN, disk_engine, open_environment
from headrace.state.engines.rocksdb import RocksDbEnvironment, StoreOptions
from headrace.state.engines.rocksdb.options import SHARED

HOLDER = """
import sys
from headrace.state.engines.rocksdb import RocksDbEnvironment
environment = RocksDbEnvironment(sys.argv[1])
environment.engine("one").put(b"a", b"1")
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def held_elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A directory that another process has open."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        yield tmp_path
        process.kill()


def test_a_second_process_is_refused(held_elsewhere: Path) -> None:
    with pytest.raises(ProcessorStateError, match=f"'{held_elsewhere}' cannot be opened: another process has it open"):
        RocksDbEnvironment(held_elsewhere)


def test_a_second_opening_in_the_same_process_is_refused(tmp_path: Path) -> None:
    environment = RocksDbEnvironment(tmp_path)
    with pytest.raises(ProcessorStateError, match="it is open in this process already; close it first"):
        RocksDbEnvironment(tmp_path)
    environment.close()


def test_a_fork_does_not_write(tmp_path: Path) -> None:
    environment = RocksDbEnvironment(tmp_path)
    environment.engine("one")
    child = os.fork()
    if child == 0:
        try:
            environment.apply({"one": Changes(rows={b"a": b"1"})})
        except ProcessorStateError as error:
            os._exit(0 if "is a fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    environment.close()


def test_a_closed_directory_can_be_opened_again_whatever_is_left_of_it(tmp_path: Path) -> None:
    environment = RocksDbEnvironment(tmp_path)
    engine = environment.engine("one")
    engine.apply(Changes(rows={b"%d" % number: b"" for number in range(100)}))
    scan, snapshot = engine.scan(), environment.snapshot()
    seen = snapshot.engine("one")
    snapshot.begin()
    assert (next(scan)[0], seen.get(b"1")) == (b"0", b"")
    environment.close()
    again = RocksDbEnvironment(tmp_path)
    assert again.engine("one").count() == 100
    again.close()


def test_a_large_store_is_estimated(tmp_path: Path) -> None:
    environment = RocksDbEnvironment(tmp_path)
    engine = environment.engine("one")
    engine.apply(Changes(rows={b"%05d" % number: b"" for number in range(20_000)}))
    snapshot = environment.snapshot()
    snapshot.begin()
    assert engine.count() == snapshot.engine("one").count() == 20_000
    engine.clear()
    assert engine.count() == 0
    environment.close()


class Tuner:
    """A config setter that remembers whom it has tuned."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def set_config(self, store_name: str, options: StoreOptions, configs: Mapping[str, Any]) -> None:
        self.seen.append((store_name, configs["application.id"]))
        options.set_write_buffer_size(1 << 20)
        options.table_format_config().set_block_size(32 * 1024)


def options_of(directory: Path, store: str) -> dict[str, str]:
    """Reads the options of a store from the file in which RocksDB keeps them."""
    newest = max(directory.glob("OPTIONS-*"))
    section, found = "", dict[str, str]()
    for line in newest.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line
        elif f'"engine-{store}"' in section and "=" in line:
            name, _, value = line.strip().partition("=")
            found[name] = value
    return found


def test_the_config_setter_changes_the_options_of_each_store(tmp_path: Path) -> None:
    tuner = Tuner()
    config = StreamsConfig(application_id="orders", rocksdb_config_setter=tuner)
    environment = open_environment("rocksdb", tmp_path, config)
    environment.apply({"one": Changes(rows={b"a": b"1"}), OWN: Changes(rows={b"offset": b"1"})})
    environment.close()
    assert tuner.seen == [("one", "orders")]
    environment = open_environment("rocksdb", tmp_path, config)
    assert tuner.seen == [("one", "orders")] * 2
    tuned, own = options_of(tmp_path, "one"), options_of(tmp_path, OWN)
    environment.close()
    assert (tuned["write_buffer_size"], tuned["block_size"]) == (str(1 << 20), "32768")
    assert own["write_buffer_size"] != str(1 << 20)
    # What it did not touch stays: compression, bloom filter, indexes in the cache.
    for options in (tuned, own):
        assert options["compression"] == "kLZ4Compression"
        assert options["filter_policy"] == "bloomfilter"
        assert options["cache_index_and_filter_blocks"] == "true"


def test_a_function_is_a_config_setter_and_may_bring_its_own_table_format(tmp_path: Path) -> None:
    from rocksdict import BlockBasedOptions

    def set_config(store_name: str, options: StoreOptions, configs: Mapping[str, Any]) -> None:
        table = BlockBasedOptions()
        table.set_block_size(64 * 1024)
        options.set_block_based_table_factory(table)

    environment = RocksDbEnvironment(tmp_path, set_config=set_config)
    environment.engine("one").put(b"a", b"1")
    found = options_of(tmp_path, "one")
    environment.close()
    assert (found["block_size"], found["filter_policy"]) == ("65536", "nullptr")


def test_a_config_setter_that_fails_is_named_with_the_store(tmp_path: Path) -> None:
    def set_config(store_name: str, options: Any, configs: Mapping[str, Any]) -> None:
        options.set_max_write_bufer_number(2)

    environment = RocksDbEnvironment(tmp_path, set_config=set_config)
    with pytest.raises(ConfigError, match=r"store 'one': rocksdb_config_setter .*set_config.* AttributeError"):
        environment.engine("one")
    environment.close()


def test_all_stores_of_a_process_share_one_bound(tmp_path: Path) -> None:
    bound = 32 * 1024 * 1024
    script = f"""
import os
from pathlib import Path
from headrace.state import Changes
from headrace.state.engines.rocksdb import RocksDbEnvironment
environments = [RocksDbEnvironment(Path({str(tmp_path)!r}) / str(n), cache_max_bytes={bound}) for n in range(3)]
most = 0
for _ in range(60):
    for environment in environments:
        for name in ("one", "two"):
            environment.engine(name).apply(Changes(rows={{os.urandom(8): os.urandom(1000) for _ in range(500)}}))
        most = max(most, environment.metrics()["write-buffer-usage"])
for environment in environments:
    for name in ("one", "two"):
        assert sum(1 for _ in environment.engine(name).scan()) == 30_000
figures = environments[0].metrics()
print(figures["block-cache-capacity"], int(most), int(figures["block-cache-usage"]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    capacity, most, usage = map(int, done.stdout.split())
    assert capacity == bound
    # 180 MB were written, and each of six stores may buffer 16 MB of its own.
    assert bound // 8 < most <= bound // 2
    assert usage <= bound * 1.1


def test_the_larger_bound_of_two_counts(tmp_path: Path) -> None:
    before = max(SHARED.max_bytes, 64 * 1024 * 1024)
    first = RocksDbEnvironment(tmp_path / "first", cache_max_bytes=before + 1)
    second = RocksDbEnvironment(tmp_path / "second", cache_max_bytes=before)
    assert first.metrics()["block-cache-capacity"] == second.metrics()["block-cache-capacity"] == before + 1
    first.close()
    second.close()


def test_metrics_tell_of_memory_and_files_by_store(tmp_path: Path) -> None:
    environment = RocksDbEnvironment(tmp_path)
    environment.engine("one").apply(Changes(rows={b"%d" % number: os.urandom(1000) for number in range(500)}))
    assert environment.metrics()["cur-size-all-mem-tables/one"] > 500_000
    assert environment.metrics()["total-sst-files-size/one"] == 0
    environment.close()
    environment = RocksDbEnvironment(tmp_path)
    figures = environment.metrics()
    assert figures["total-sst-files-size/one"] > 500_000
    assert figures["estimate-num-keys/one"] == 500
    assert sum(1 for _ in environment.engine("one").scan()) == 500
    assert environment.metrics()["block-cache-usage"] >= figures["block-cache-usage"] + 500_000
    assert "block-cache-data-hit-ratio" not in figures
    environment.close()


def test_hits_are_counted_if_the_recording_level_asks_for_it(tmp_path: Path) -> None:
    config = StreamsConfig(metrics_recording_level="DEBUG")
    environment = open_environment("rocksdb", tmp_path, config)
    environment.engine("one").apply(Changes(rows={b"%d" % number: b"x" * 100 for number in range(500)}))
    environment.close()
    environment = open_environment("rocksdb", tmp_path, config)
    engine = environment.engine("one")
    assert environment.metrics()["block-cache-data-hit-ratio"] == 0
    for _ in range(4):
        assert engine.get(b"7") == b"x" * 100
    figures = environment.metrics()
    assert figures["block-cache-data-hit-ratio"] == pytest.approx(3 / 4)
    assert figures["memtable-hit-ratio"] == 0
    assert figures["bytes-read-total"] == 400
    engine.put(b"new", b"row")
    assert engine.get(b"new") == b"row"
    assert environment.metrics()["memtable-hit-ratio"] == pytest.approx(1 / 5)
    environment.close()


def test_a_missing_package_is_told_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("headrace.state.engines.rocksdb")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    with pytest.raises(ConfigError, match=r"pip install 'headrace\[rocksdb\]'"):
        open_environment("rocksdb", tmp_path, StreamsConfig())


def test_the_engine_of_a_store_is_its_own_or_the_applications() -> None:
    def of(default: str, **chosen: Any) -> list[str | None]:
        builder = StreamsBuilder()
        builder.stream("a").group_by_key().count(materialized=Materialized("counts", **chosen))
        builder.add_state_store(Stores.key_value_store_builder(Stores.persistent_key_value_store("own")))
        config = StreamsConfig(default_dsl_store=default)
        builders = builder.build(config).store_builders
        return [disk_engine(builders[name], config) for name in ("counts", "own")]

    assert of("lmdb") == of("disk") == ["lmdb", "lmdb"]
    assert of("rocksdb") == of("rocksDB") == ["rocksdb", "rocksdb"]
    assert of("in_memory") == [None, "lmdb"]
    assert of("lmdb", store_type="rocksdb") == ["rocksdb", "lmdb"]
    assert of("rocksdb", store_type="lmdb") == ["lmdb", "rocksdb"]
    assert of("rocksdb", store_type="disk") == ["rocksdb", "rocksdb"]
    assert of("rocksdb", store_type="in_memory") == [None, "rocksdb"]
    assert of("in_memory", store_type="disk") == ["lmdb", "lmdb"]


def test_the_driver_keeps_stores_in_the_engine_that_was_chosen(tmp_path: Path) -> None:
    builder = StreamsBuilder()
    stream = builder.stream("a").group_by_key()
    stream.count(materialized=Materialized("default"))
    stream.count(materialized=Materialized("chosen", store_type="lmdb"))
    config = StreamsConfig(application_id="app", default_dsl_store="rocksdb")
    for counted in (1, 2):
        with TopologyTestDriver(builder.build(config), config, state_dir=tmp_path) as driver:
            driver.create_input_topic("a").pipe_input("tea", "")
            stores = [driver.get_key_value_store(name) for name in ("default", "chosen")]
            assert [store.get("tea") for store in stores] == [counted, counted]
    assert {path.parent.name for path in tmp_path.glob("app/*/*/*") if path.name in ("data.mdb", "CURRENT")} == {
        "lmdb",
        "rocksdb",
    }
