"""Who keeps views of an application: a small compacted topic, from which everybody concludes the same."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b

from headrace.errors import OffsetOutOfRangeError, TopicExistsError, UnknownTopicError
from headrace.query.metadata import HostInfo
from headrace.topics.log import TopicLog

logger = logging.getLogger(__name__)

_LOOKED_AT = 100
"""So many of the newest records tell what a topic is."""


@dataclass(frozen=True)
class Member:
    """A process that keeps views, as it has announced itself."""

    id: str
    host: HostInfo
    heartbeat_ms: int
    """When it has announced itself last, by its own clock."""
    lags: Mapping[str, int]
    """The tasks that it keeps, and how many changes each was behind; -1 while it is being built."""

    def pack(self) -> bytes:
        return json.dumps(
            {"host": self.host.host, "port": self.host.port, "heartbeat": self.heartbeat_ms, "lags": dict(self.lags)}
        ).encode()

    @classmethod
    def unpack(cls, member_id: str, data: bytes) -> Member:
        found = json.loads(data)
        return cls(member_id, HostInfo(found["host"], found["port"]), found["heartbeat"], found["lags"])


def roster_topic(application_id: str) -> str:
    """Returns the name of the topic.

    >>> roster_topic("app")
    'app-views'
    """
    return f"{application_id}-views"


def is_roster(topic: str, log: TopicLog) -> bool:
    """Tells whether a topic is such a one, by its newest records; one of that name may be the user's own."""
    if not log.describe_topic(topic).is_compacted:
        return False
    target = (topic, 0)
    start = max(log.begin_offsets([target])[target], log.end_offsets([target])[target] - _LOOKED_AT)
    found = log.read(topic, 0, start, max_records=_LOOKED_AT)
    return bool(found) and all(_is_announcement(key, value) for _, _, key, value, _ in found)


def _is_announcement(key: bytes | None, value: bytes | None) -> bool:
    if key is None or value is None:
        # Who says goodbye leaves only its name.
        return key is not None
    try:
        Member.unpack(key.decode(), value)
    except (ValueError, KeyError, TypeError):
        return False
    return True


def ranking(task: str, members: Iterable[str]) -> list[str]:
    """Returns members in the order in which they are to keep a task: everybody has a place of its own for each task.

    Who comes or goes changes nothing between the others.

    >>> first = ranking("0_1", ["a", "b", "c"])
    >>> [each for each in first if each != "b"] == ranking("0_1", ["c", "a"])
    True
    """
    return sorted(members, key=lambda member: (blake2b(f"{task}/{member}".encode()).digest(), member))


def keepers(task: str, members: Collection[str], standbys: int) -> list[str]:
    """Returns who is to keep a task: the first is the active one once it is ready, the others are its standbys."""
    return ranking(task, members)[: 1 + standbys]


def active_keeper(task: str, live: Mapping[str, Member], standbys: int) -> str | None:
    """Returns who is to be asked: the first keeper that is ready, else whoever is, else the first keeper.

    >>> def member(name, **lags): return Member(name, HostInfo("here", 1), 0, lags)
    >>> first, second = ranking("t", ["a", "b"])
    >>> active_keeper("t", {first: member(first, t=-1), second: member(second, t=0)}, 1) == second
    True
    """
    order = ranking(task, live)
    ready = [each for each in order if live[each].lags.get(task, -1) >= 0]
    chosen = [each for each in order[: 1 + standbys] if each in ready]
    return next(iter([*chosen, *ready, *order]), None)


def shares(
    tasks: Iterable[str], live: Mapping[str, Member], standbys: int, member: str, held: Collection[str]
) -> set[str]:
    """Returns the tasks that a member is to keep: its own, and those it has until all who take them over are ready."""
    mine = set()
    for task in tasks:
        wanted = keepers(task, live, standbys)
        if member in wanted or (task in held and any(live[each].lags.get(task, -1) < 0 for each in wanted)):
            mine.add(task)
    return mine


class Roster:
    """The announcements of all members, as far as they have been read."""

    def __init__(self, application_id: str, log: TopicLog) -> None:
        self.topic = roster_topic(application_id)
        self._log = log
        self._offset = 0
        self._members: dict[str, Member] = {}

    def create(self) -> None:
        """Makes the topic if it is not there."""
        with suppress(TopicExistsError):
            self._log.create_topic(self.topic, configs={"cleanup.policy": "compact"})

    def announce(self, member: Member) -> None:
        """Says that a member is alive, and what it has."""
        self._append(member.id, member.heartbeat_ms, member.pack())

    def leave(self, member_id: str, now_ms: int) -> None:
        """Says goodbye for a member."""
        self._append(member_id, now_ms, None)

    def _append(self, member_id: str, now_ms: int, value: bytes | None) -> None:
        record = (0, now_ms, member_id.encode(), value, ())
        try:
            self._log.append(self.topic, [record])
        except UnknownTopicError:
            # Somebody has reset the application.
            self.create()
            self._log.append(self.topic, [record])

    def refresh(self) -> None:
        """Reads what was announced since."""
        try:
            while found := self._log.read(self.topic, 0, self._offset):
                for offset, _, key, value, _ in found:
                    self._take(key, value)
                    self._offset = offset + 1
        except UnknownTopicError:
            self._start_over(0)
        except OffsetOutOfRangeError as error:
            self._start_over(max(error.begin, 0))

    def _start_over(self, offset: int) -> None:
        self._members.clear()
        self._offset = offset

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        if key is None:
            return
        member_id = key.decode()
        if value is None:
            self._members.pop(member_id, None)
            return
        try:
            self._members[member_id] = Member.unpack(member_id, value)
        except (ValueError, KeyError, TypeError):
            logger.warning("topic '%s': the announcement of '%s' cannot be read", self.topic, member_id)

    def live(self, now_ms: int, lease_ms: int) -> dict[str, Member]:
        """Returns the members whose last heartbeat is not longer ago than the lease."""
        return {each.id: each for each in self._members.values() if now_ms - each.heartbeat_ms <= lease_ms}

    def members(self) -> Sequence[Member]:
        """Returns all members that have not said goodbye, dead ones included."""
        return list(self._members.values())
