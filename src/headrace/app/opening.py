"""What is checked and made before an engine starts: directories, lock, log, topics, the fit of topology and state."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from headrace.app.application_file import ApplicationFile
from headrace.app.fingerprint import Fingerprint, check_compatible
from headrace.app.lock import locked
from headrace.app.places import application_directory, open_log
from headrace.app.reset import finish_reset
from headrace.app.topics import check_sources, external_partitions, internal_topics, make_internal, make_outputs
from headrace.config import StreamsConfig
from headrace.errors import StateDirectoryError
from headrace.topics.journal import DurableLog
from headrace.topology.topology import Topology

logger = logging.getLogger(__name__)

_FORMER_CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class Opened:
    """What a running application holds; closing it gives all back."""

    log: DurableLog
    directory: Path
    descriptors: tuple[int, ...]
    """Of the locks, for children that hold them as well."""
    _held: ExitStack

    @classmethod
    def by(cls, topology: Topology, config: StreamsConfig, log: DurableLog | None) -> Self:
        """Takes the application's directory and log, and prepares both; a given log is not closed in the end."""
        directory = application_directory(config)
        with ExitStack() as held:
            locks = held.enter_context(locked([directory], config.application_id))
            if log is None:
                log = open_log(config)
                held.callback(log.close)
            _prepare(topology, config, log, directory)
            return cls(log, directory, tuple(lock.descriptor for lock in locks), held.pop_all())
        raise AssertionError  # for type checkers, which think that the stack may swallow an error

    def close(self) -> None:
        try:
            self._held.close()
        except Exception:
            # The application has ended all the same, with its result or its own failure.
            logger.exception("what the application held could not be given back")


def _prepare(topology: Topology, config: StreamsConfig, log: DurableLog, directory: Path) -> None:
    file = _saved(config, log, directory)
    check_sources(topology, external_partitions(topology, config.application_id, log))
    make_outputs(topology, config, log, external_partitions(topology, config.application_id, log))
    # A pattern may match what was just made.
    external = external_partitions(topology, config.application_id, log)
    fingerprint = Fingerprint.of(topology, external)
    if file is not None:
        check_compatible(config.application_id, file.topology, fingerprint)
    wanted = internal_topics(topology, config, external)
    before = () if file is None else file.internal_topics
    make_internal(wanted, config, log, before)
    names = tuple(dict.fromkeys([*before, *(topic.name for topic in wanted)]))
    now = ApplicationFile(config.application_id, fingerprint, names)
    if now != file:
        now.write(directory)


def _saved(config: StreamsConfig, log: DurableLog, directory: Path) -> ApplicationFile | None:
    """Returns what the directory says of itself; on a machine where the application never ran, nothing."""
    file, application = ApplicationFile.read(directory), config.application_id
    if (directory / _FORMER_CHECKPOINT).exists():
        message = (
            f"application '{application}': '{directory / _FORMER_CHECKPOINT}' is a checkpoint of an earlier version of "
            "Headrace, which kept state there; this one keeps it in the log, and cannot take it over; start over with "
            f"`headrace reset {application}`, or go on with the earlier version"
        )
        raise StateDirectoryError(message)
    if file is not None:
        file.check_owner(directory, application)
        if file.is_resetting:
            logger.info("application '%s': finishing a reset that was interrupted", application)
            finish_reset(file, config, log)
            return None
    return file
