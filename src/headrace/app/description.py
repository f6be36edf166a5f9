"""The description of an application: what the log knows of it besides its progress.

It lies in the log, so that a start on another machine, with an empty directory, finds it as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.app.fingerprint import Fingerprint
from headrace.app.topics import external_partitions, internal_topics
from headrace.batches.change_plan import ChangePlan
from headrace.batches.inputs import input_ids
from headrace.config import StreamsConfig
from headrace.errors import StateDirectoryError
from headrace.topics.journal import DurableLog
from headrace.topology.outline import Outline
from headrace.topology.topology import Topology

FORMAT = 3


@dataclass(frozen=True)
class Description:
    """Description of an application in the log: the topology that its state fits, and the topics that belong to it."""

    application: str
    topology: Fingerprint
    internal_topics: tuple[str, ...] = ()
    """Topics that were made for this application alone, by their names in the log."""
    input_ids: Mapping[str, str] = field(default_factory=dict)
    """Of the topics that it reads: one that is deleted and made anew has another id, and other records."""
    outline: Outline = field(default_factory=Outline)
    """Its nodes and stores, which a changed topology is compared with."""
    is_resetting: bool = False
    """Whether a reset has begun: nothing else counts until it has ended."""
    change: ChangePlan | None = None
    """A change that has begun: the application cannot be run until it is finished."""
    is_handed_back: bool = False
    """Whether Kafka Streams goes on with it: what the journal says is out of date as soon as that runs."""

    @classmethod
    def of(
        cls,
        log: DurableLog,
        topology: Topology,
        config: StreamsConfig,
        external: Mapping[str, int],
        internal_topics: Iterable[str],
    ) -> Description:
        """Describes a topology on topics of others that have so many partitions; internal topics may be named twice."""
        application = config.application_id
        return cls(
            application,
            Fingerprint.of(topology, external),
            tuple(dict.fromkeys(internal_topics)),
            input_ids(topology, application, log),
            Outline.of(topology, config, external),
        )

    @classmethod
    def on(
        cls, log: DurableLog, topology: Topology, config: StreamsConfig, further_topics: Iterable[str] = ()
    ) -> Description:
        """Describes a topology on the topics that are in the log; ``further_topics`` are internal, too."""
        external = external_partitions(topology, config.application_id, log)
        names = [topic.name for topic in internal_topics(topology, config, external)]
        return cls.of(log, topology, config, external, [*names, *further_topics])

    @classmethod
    def read(cls, log: DurableLog, application: str) -> Description | None:
        """Reads the description of an application; None if there is none."""
        data = log.application_description(application)
        return None if data is None else cls.parse(application, data)

    @classmethod
    def parse(cls, application: str, data: bytes) -> Description:
        """Reads what ``write`` has written."""
        return _parse_description(application, data)

    def write(self, log: DurableLog) -> None:
        content = {
            "format": FORMAT,
            "internal_topics": list(self.internal_topics),
            "input_ids": dict(self.input_ids),
            "is_resetting": self.is_resetting,
            "topology": self.topology.to_json(),
            "outline": self.outline.to_json(),
        }
        if self.is_handed_back:
            content["is_handed_back"] = True
        if self.change is not None:
            content["change"] = self.change.pack().decode()
        log.describe_application(self.application, json.dumps(content).encode())

    def resetting(self) -> Description:
        return replace(self, is_resetting=True, change=None)


def _parse_description(application: str, data: bytes) -> Description:
    remedy = f"use the version of Headrace that wrote it, or start over with `headrace reset {application}`"
    try:
        # Any: JSON that another version may have written.
        found: Any = json.loads(data)
        if found["format"] != FORMAT:
            message = f"the log describes application '{application}' in the format {found['format']!r}; {remedy}"
            raise StateDirectoryError(message)
        return Description(
            application,
            Fingerprint.from_json(found["topology"]),
            tuple(map(str, found["internal_topics"])),
            dict(found["input_ids"]),
            Outline.from_json(found["outline"]),
            bool(found["is_resetting"]),
            ChangePlan.unpack(found["change"]) if "change" in found else None,
            bool(found.get("is_handed_back", False)),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        message = f"the log's description of application '{application}' cannot be read ({error!r}); {remedy}"
        raise StateDirectoryError(message) from error
