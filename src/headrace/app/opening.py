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
from headrace.app.places import application_directory, checkpoint_directory, open_log
from headrace.app.reset import finish_reset, has_checkpoint, lock_places
from headrace.app.topics import check_sources, external_partitions, internal_topics, make_internal, make_outputs
from headrace.config import StreamsConfig
from headrace.errors import StateDirectoryError
from headrace.spark.statelessness import needs_state
from headrace.topics.log import TopicLog
from headrace.topology.topology import Topology

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Opened:
    """What a running application holds; closing it gives all back."""

    log: TopicLog
    directory: Path
    checkpoint: Path
    descriptors: tuple[int, ...]
    """Of the locks, for children that hold them as well."""
    _held: ExitStack

    @classmethod
    def by(cls, topology: Topology, config: StreamsConfig, log: TopicLog | None) -> Self:
        """Takes the application's directory and log, and prepares both; a given log is not closed in the end."""
        directory, checkpoint = application_directory(config), checkpoint_directory(config)
        with ExitStack() as held:
            locks = held.enter_context(locked(lock_places(config), config.application_id))
            if log is None:
                log = open_log(config)
                held.callback(log.close)
            _prepare(topology, config, log, directory, checkpoint)
            return cls(log, directory, checkpoint, tuple(lock.descriptor for lock in locks), held.pop_all())
        raise AssertionError  # for type checkers, which think that the stack may swallow an error

    def close(self) -> None:
        try:
            self._held.close()
        except Exception:
            # The application has ended all the same, with its result or its own failure.
            logger.exception("what the application held could not be given back")


def _prepare(topology: Topology, config: StreamsConfig, log: TopicLog, directory: Path, checkpoint: Path) -> None:
    file = _saved(config, log, directory, checkpoint)
    check_sources(topology, external_partitions(topology, config.application_id, log))
    make_outputs(topology, config, log, external_partitions(topology, config.application_id, log))
    # A pattern may match what was just made.
    external = external_partitions(topology, config.application_id, log)
    fingerprint = Fingerprint.of(topology, external, keeps_state=needs_state(topology, config))
    if file is not None:
        check_compatible(config.application_id, file.topology, fingerprint)
    wanted = internal_topics(topology, config, external)
    make_internal(wanted, config, log)
    before = () if file is None else file.internal_topics
    names = tuple(dict.fromkeys([*before, *(topic.name for topic in wanted)]))
    now = ApplicationFile(config.application_id, fingerprint, names)
    if now != file:
        now.write(directory)


def _saved(config: StreamsConfig, log: TopicLog, directory: Path, checkpoint: Path) -> ApplicationFile | None:
    """Returns what the directory says of itself, once it and the log tell the same story."""
    file, application = ApplicationFile.read(directory), config.application_id
    if file is not None:
        file.check_owner(directory, application)
        if file.is_resetting:
            logger.info("application '%s': finishing a reset that was interrupted", application)
            finish_reset(file, config, log)
            return None
    # A reset may leave positions to begin at, under a batch before the first one.
    last = log.last_batch(application)
    if has_checkpoint(checkpoint):
        if file is None:
            message = (
                f"application '{application}': '{checkpoint}' has a checkpoint, but '{directory}' does not say which "
                "topology it fits; bring the directory back as it was, or start over with "
                f"`headrace reset {application}`"
            )
            raise StateDirectoryError(message)
    elif last is not None and last.batch_id >= 0:
        message = (
            f"application '{application}': the log has its results up to batch {last.batch_id}, but the checkpoint in "
            f"'{checkpoint}' is gone, and with it the state; set state_dir and checkpoint_dir as they were, or start "
            f"over with `headrace reset {application}`"
        )
        raise StateDirectoryError(message)
    return file
