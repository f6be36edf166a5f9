"""Decides for each type and method of Kafka Streams whether Headrace has it, does it differently, or leaves it out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path

from tools.api_reference.checklist import Checklist, KafkaType, Method
from tools.api_reference.package import Found, UnknownNameError, constructor, find, find_member, is_public

SOURCE = Path(__file__).with_name("mapping.toml")
EVERY_TYPE = "*"
THE_TYPE = "_type"


class Status(Enum):
    """How much of something is here."""

    PRESENT = "present"
    DIFFERENT = "different"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a type or method: where it is, or how it is done instead, or why not."""

    status: Status
    found: tuple[Found, ...] = ()
    text: str = ""
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class JudgedType:
    """A type of Kafka Streams with its verdict and those of its methods."""

    kafka: KafkaType
    verdict: Verdict
    methods: tuple[tuple[Method, Verdict], ...]

    @property
    def as_a_whole(self) -> bool:
        """Whether all that is to be said is said of the type."""
        return self.verdict.status is not Status.PRESENT and all(verdict.inherited for _, verdict in self.methods)


class MappingError(ValueError):
    """The mapping does not cover the list, or says something that is not so: each line is one thing to mend."""


class Mapping:
    """The sections of ``mapping.toml``; its head says what they mean."""

    def __init__(self, sections: dict[str, dict[str, str]]) -> None:
        self._sections = sections
        self._unused = {(section, key) for section, entries in sections.items() for key in entries}
        self._problems: list[str] = []

    def judge(self, checklist: Checklist) -> list[JudgedType]:
        """Gives verdicts on everything in the list; raises ``MappingError`` with all problems at once."""
        judged = [self._judge(kafka) for kafka in checklist.types]
        self._problems += [f"[{section}] {key}: nothing is left for it" for section, key in sorted(self._unused)]
        if self._problems:
            raise MappingError("\n".join(self._problems))
        return judged

    def _judge(self, kafka: KafkaType) -> JudgedType:
        verdict = self._judge_type(kafka)
        here = verdict.found[0].value if verdict.found else None
        owner = here if isinstance(here, type) else None
        if verdict.status is Status.PRESENT:
            absent = [value for value in kafka.values if owner is None or find_member(owner, value) is None]
            self._problems += [f"{kafka.id}: there is no value {value}" for value in absent]
        methods = [(method, self._judge_method(kafka, method, verdict, owner)) for method in kafka.methods]
        return JudgedType(kafka, verdict, tuple(methods))

    def _judge_type(self, kafka: KafkaType) -> Verdict:
        same = re.sub("Exception$", "Error", kafka.name)
        for _, entry in self._entries(kafka, THE_TYPE):
            verdict = self._verdict(entry, kafka.id, None)
            self._check_absence(verdict, kafka.id, here=is_public(same))
            return verdict
        return self._verdict(f"present: {same}", kafka.id, None)

    def _judge_method(self, kafka: KafkaType, method: Method, of_type: Verdict, owner: type | None) -> Verdict:
        where = f"{kafka.id}.{method.name}"
        entries = list(self._entries(kafka, method.name))
        for section, entry in entries:
            if section != EVERY_TYPE:
                verdict = self._verdict(entry, where, owner)
                here = owner is not None and find_member(owner, snake_case(method.name)) is not None
                self._check_absence(verdict, where, here=here)
                return verdict
        if of_type.status is not Status.PRESENT:
            return Verdict(of_type.status, inherited=True)
        found = None if owner is None else _same(owner, method.name)
        if found is not None:
            return Verdict(Status.PRESENT, (found,))
        for _, entry in entries:
            return self._verdict(entry, where, owner)
        self._problems.append(f"{where}: not found, and the mapping does not say why")
        return Verdict(Status.ABSENT)

    def _check_absence(self, verdict: Verdict, where: str, *, here: bool) -> None:
        if verdict.status is Status.ABSENT and verdict.text and here:
            self._problems.append(f"{where}: the mapping says it is absent, but it is here")

    def _entries(self, kafka: KafkaType, name: str) -> Iterator[tuple[str, str]]:
        for section in sorted(self._sections, key=lambda one: (one == EVERY_TYPE, one != kafka.id)):
            if not any(fnmatchcase(kafka.id, pattern) for pattern in section.split("|")):
                continue
            entries = self._sections[section]
            for key in sorted(entries, key=lambda one: (one != name, -len(one))):
                match = re.fullmatch(re.escape(key).replace(r"\*", "(.*)"), name)
                if match and (key == name or name != THE_TYPE):
                    self._unused.discard((section, key))
                    rest = snake_case(match.group(1)) if match.groups() else ""
                    yield section, entries[key].replace("{type}", kafka.name).replace("{*}", rest)
                    break

    def _verdict(self, entry: str, where: str, owner: type | None) -> Verdict:
        try:
            return parse(entry, owner)
        except (ValueError, UnknownNameError) as error:
            self._problems.append(f"{where}: {error}")
            return Verdict(Status.ABSENT)


def load(path: Path = SOURCE) -> dict[str, dict[str, str]]:
    """Reads the sections of the mapping."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def parse(entry: str, owner: type | None = None) -> Verdict:
    """Reads a value of the mapping, and looks up all names in it.

    >>> parse("different: keyword of `Grouped(name=)`").status
    <Status.DIFFERENT: 'different'>
    """
    word, _, text = entry.partition(": ")
    status = Status(word)
    if status is Status.PRESENT:
        return Verdict(status, tuple(find(name, owner) for name in text.split(", ")))
    for name in re.findall(r"`([A-Za-z_][^`]*)`", text):
        find(name, owner)
    return Verdict(status, text=text)


def snake_case(name: str) -> str:
    """Turns a Java name into a Python one.

    >>> snake_case("groupByKey"), snake_case("withValueSerde")
    ('group_by_key', 'with_value_serde')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _same(owner: type, method: str) -> Found | None:
    """Finds a method under its own name, as a time in milliseconds, or as a property instead of a getter."""
    if method == "constructor":
        return constructor(owner)
    name = snake_case(method)
    for candidate in (name, f"{name}_ms", re.sub("^(get|is)_", "", name)):
        found = find_member(owner, candidate)
        if found is not None:
            return found
    return None
