"""Membership of processes that keep views: leases in a compacted topic, and the assignment that follows from them."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b

from headrace.errors import OffsetOutOfRangeError, TopicExistsError, UnknownTopicError
from headrace.topics.log import TopicLog
from headrace.views.metadata import HostInfo
from headrace.views.peer_authentication import PeerProof

logger = logging.getLogger(__name__)

_COMPLAINTS = 100
"""Upper limit of members with a warning: invalid announcements may come under any number of names."""
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

    signature: str = ""
    """What proves that it knows the token; empty where there is none."""

    def pack(self) -> bytes:
        return json.dumps({**self._content(), "signature": self.signature}).encode()

    def _content(self) -> dict[str, object]:
        host = self.host
        return {"host": host.host, "port": host.port, "heartbeat": self.heartbeat_ms, "lags": dict(self.lags)}

    @classmethod
    def unpack(cls, member_id: str, data: bytes) -> Member:
        """Reads an announcement; raises ``ValueError`` for other data."""
        try:
            found = json.loads(data)
        except RecursionError as error:
            message = "it is nested too deeply"
            raise ValueError(message) from error
        if not isinstance(found, dict):
            message = "it is not a JSON object"
            raise ValueError(message)
        for name, is_right in _PARTS.items():
            if not is_right(found.get(name)):
                message = f"'{name}' is missing or wrong"
                raise ValueError(message)
        host = HostInfo(found["host"], found["port"])
        return cls(member_id, host, found["heartbeat"], found["lags"], found.get("signature", ""))

    def signed(self, proof: PeerProof, topic: str) -> Member:
        """Returns it with a signature."""
        return replace(self, signature=proof.sign(*self._signed_parts(topic)))

    def is_signed(self, proof: PeerProof, topic: str) -> bool:
        """Tells whether the announcement was signed with the token."""
        return proof.is_signed(self.signature, *self._signed_parts(topic))

    def _signed_parts(self, topic: str) -> tuple[str, ...]:
        return ("announcement", topic, self.id, json.dumps(self._content(), sort_keys=True))


def _is_number(found: object, low: int, high: int) -> bool:
    return type(found) is int and low <= found <= high


def _are_lags(found: object) -> bool:
    return isinstance(found, dict) and all(
        _TASK.fullmatch(task) and _is_number(lag, -1, _LARGEST) for task, lag in found.items()
    )


_LARGEST = (1 << 63) - 1
_TASK = re.compile(r"[0-9]{1,9}_[0-9]{1,9}")
_HOST = re.compile(r"[A-Za-z0-9._:%-]{1,255}")
_PARTS: Mapping[str, Callable[[object], bool]] = {
    "host": lambda found: isinstance(found, str) and _HOST.fullmatch(found) is not None,
    "port": lambda found: _is_number(found, -1, 65535),
    "heartbeat": lambda found: _is_number(found, 0, _LARGEST),
    "lags": _are_lags,
    "signature": lambda found: found is None or isinstance(found, str),
}


def membership_topic(application_id: str) -> str:
    """Returns the name of the topic.

    >>> membership_topic("app")
    'app-views'
    """
    return f"{application_id}-views"


def is_membership_topic(topic: str, log: TopicLog) -> bool:
    """Tells whether a topic is such a one, by its newest records; one of that name may be the user's own."""
    if not log.describe_topic(topic).is_compacted:
        return False
    target = (topic, 0)
    start = max(log.begin_offsets([target])[target], log.end_offsets([target])[target] - _LOOKED_AT)
    found = log.read(topic, 0, start, max_records=_LOOKED_AT)
    return bool(found) and all(_is_announcement(key, value) for _, _, key, value, _ in found)


def _is_announcement(key: bytes | None, value: bytes | None) -> bool:
    if key is None or value is None:
        # A member that leaves writes a record without a value.
        return key is not None
    try:
        Member.unpack(key.decode(), value)
    except ValueError:
        return False
    return True


def ranking(task: str, members: Iterable[str]) -> list[str]:
    """Returns members in the order in which they are to keep a task: rendezvous hashing, a ranking for each task.

    A member that comes or goes changes nothing between the others.

    >>> first = ranking("0_1", ["a", "b", "c"])
    >>> [each for each in first if each != "b"] == ranking("0_1", ["c", "a"])
    True
    """
    return sorted(members, key=lambda member: (blake2b(f"{task}/{member}".encode()).digest(), member))


def keepers(task: str, members: Collection[str], standbys: int) -> list[str]:
    """Returns the members that keep a task: the first is the active one once it is ready, the others are standbys."""
    return ranking(task, members)[: 1 + standbys]


def active_keeper(task: str, live: Mapping[str, Member], standbys: int) -> str | None:
    """Returns the member to query: the first keeper that is ready, else any member that is, else the first keeper.

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


class MembershipTable:
    """The announcements of all members, as far as they have been read.

    With a ``proof`` only signed announcements count.
    """

    def __init__(self, application_id: str, log: TopicLog, proof: PeerProof | None = None) -> None:
        self.topic = membership_topic(application_id)
        self._log = log
        self._proof = proof
        self._complained: set[str] = set()
        self._offset = 0
        self._members: dict[str, Member] = {}

    def create(self) -> None:
        """Makes the topic if it is not there."""
        with suppress(TopicExistsError):
            self._log.create_topic(self.topic, configs={"cleanup.policy": "compact"})

    def announce(self, member: Member) -> None:
        """Says that a member is alive, and what it has."""
        signed = member if self._proof is None else member.signed(self._proof, self.topic)
        self._append(member.id, member.heartbeat_ms, signed.pack())

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
        """Reads announcements since the last call."""
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
        try:
            member_id = key.decode()
            if value is None:
                self._members.pop(member_id, None)
                return
            found = Member.unpack(member_id, value)
        except ValueError as error:
            self._complain(str(key[:100]), f"cannot be read: {error}")
            return
        if self._proof is not None and not found.is_signed(self._proof, self.topic):
            reason = "does not prove that it knows http.token; give all processes of the application the same one"
            self._complain(member_id, reason)
            return
        self._members[member_id] = found

    def _complain(self, member: str, reason: str) -> None:
        """Says once why a member's announcements are left out."""
        if member not in self._complained and len(self._complained) < _COMPLAINTS:
            self._complained.add(member)
            logger.warning("topic '%s': an announcement of %s is left out, it %s", self.topic, member, reason)

    def live(self, now_ms: int, lease_ms: int) -> dict[str, Member]:
        """Returns the members whose last heartbeat is not longer ago than the lease."""
        return {each.id: each for each in self._members.values() if now_ms - each.heartbeat_ms <= lease_ms}

    def members(self) -> Sequence[Member]:
        """Returns all members that have not said goodbye, dead ones included."""
        return list(self._members.values())
