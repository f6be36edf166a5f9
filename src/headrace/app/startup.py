"""Opening of an application, before an engine starts: directories, lock, log, topics, the fit of topology and state."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from headrace.app.description import Description
from headrace.app.directories import application_directory, check_default_directory, open_log
from headrace.app.fingerprint import (
    check_compatible,
    check_formats,
    check_generated_names,
    check_partitions,
)
from headrace.app.lock import locked
from headrace.app.reset import finish_reset
from headrace.app.topics import (
    check_sources,
    check_unused,
    external_partitions,
    internal_topics,
    make_internal,
    make_outputs,
)
from headrace.batches.inputs import check_deleted, check_inputs, named_inputs
from headrace.config import StreamsConfig
from headrace.errors import BatchError, StateDirectoryError
from headrace.topics.consumer_group import left_by_kafka_streams
from headrace.topics.journal import DurableLog
from headrace.topology.topology import Topology

logger = logging.getLogger(__name__)

_FORMER_CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class ApplicationResources:
    """Resources of a running application; closing it releases all of them."""

    log: DurableLog
    directory: Path
    _held: ExitStack

    @classmethod
    def by(cls, topology: Topology, config: StreamsConfig, log: DurableLog | None) -> Self:
        """Takes the application's directory and log, and prepares both; a given log is not closed in the end."""
        check_default_directory(config)
        directory = application_directory(config)
        with ExitStack() as held:
            held.enter_context(locked(directory, config.application_id))
            if log is None:
                log = open_log(config)
                held.callback(log.close)
            _prepare(topology, config, log, directory)
            return cls(log, directory, held.pop_all())
        raise AssertionError  # for type checkers, which think that the stack may swallow an error

    def close(self) -> None:
        try:
            self._held.close()
        except Exception:
            # The application has ended all the same, with its result or its own failure.
            logger.exception("what the application held could not be given back")


def _prepare(topology: Topology, config: StreamsConfig, log: DurableLog, directory: Path) -> None:
    known, application = _read_known(config, log, directory), config.application_id
    external = external_partitions(topology, application, log)
    if known is not None:
        check_deleted(application, named_inputs(topology) & known.input_ids.keys(), external)
    check_sources(topology, external)
    if known is not None:
        # Before anything is counted: inputs of a join of which only one has grown have no number in common.
        check_partitions(application, known.topology, external)
    make_outputs(topology, config, log, external)
    # A pattern may match what was just made.
    external = external_partitions(topology, application, log)
    wanted = internal_topics(topology, config, external)
    before = () if known is None else known.internal_topics
    names = [*before, *(topic.name for topic in wanted)]
    now = Description.of(log, topology, config, external, names)
    if known is None:
        check_unused(wanted, application, log)
    else:
        _check_own(known, log)
        check_inputs(application, known.input_ids, now.input_ids)
        check_compatible(application, known.topology, now.topology)
        check_formats(application, known.outline, now.outline)
        check_generated_names(application, known.outline, now.outline)
    make_internal(wanted, config, log, before)
    if now != known:
        now.write(log)


def _check_own(known: Description, log: DurableLog) -> None:
    """Complains if Kafka Streams goes on with the application: then its state is not where the journal says."""
    application = known.application
    remedy = f"stop Kafka Streams, and go on with its state: `headrace takeover {application} MODULE:BUILD`"
    if known.is_handed_back:
        message = f"application '{application}' was handed back to Kafka Streams; {remedy}"
        raise BatchError(message)
    if left_by_kafka_streams(log.group_offsets(application)):
        message = (
            f"application '{application}': Kafka Streams has run under this application.id since Headrace did, and has "
            f"committed offsets; {remedy}"
        )
        raise BatchError(message)


def _read_known(config: StreamsConfig, log: DurableLog, directory: Path) -> Description | None:
    """Returns what the log knows of the application."""
    application = config.application_id
    if (directory / _FORMER_CHECKPOINT).exists():
        message = (
            f"application '{application}': '{directory / _FORMER_CHECKPOINT}' is a checkpoint of an earlier version of "
            "Headrace, which kept state there; this one keeps it in the log, and cannot take it over; start over with "
            f"`headrace reset {application}`, or go on with the earlier version"
        )
        raise StateDirectoryError(message)
    known = Description.read(log, application)
    if known is not None and known.is_resetting:
        logger.info("application '%s': finishing a reset that was interrupted", application)
        finish_reset(known, config, log)
        return None
    if known is not None and known.change is not None:
        known.change.refuse_start(application)
    return known
