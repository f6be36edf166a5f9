"""Renders the verdicts as a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

from tools.api_reference.checklist import KafkaType, Method
from tools.api_reference.mapping import JudgedType, Status, Verdict
from tools.api_reference.package import Found, find, public_names, public_path
from tools.api_reference.settings import JudgedSetting

TITLES = {
    "streams": "`streams`: builder, topology, configuration",
    "kstream": "`kstream`: the DSL",
    "processor": "`processor`: time, topics and stores seen from processors",
    "processor.api": "`processor.api`: the Processor API",
    "state": "`state`: stores",
    "query": "`query`: interactive queries",
    "errors": "`errors`: errors and handlers",
    "test-utils": "`test-utils`: testing",
    "processor.assignment": "`processor.assignment`: placing tasks",
    "processor.assignment.assignors": "`processor.assignment.assignors`",
}

HEAD = """\
# API reference, against Kafka Streams

Every public type and method of Kafka Streams, and what it is in Headrace. `make docs` writes this page from the package
itself, and the tests check it: a name on this page exists. The list is that of Kafka's trunk after 4.4; behaviour is
that of Kafka Streams 4.1, against which Headrace is tested. A number in parentheses is the version that brought it.

- **present**: the same thing under its Python name, with the first sentence of its docstring.
- **different**: the same result in another way; the page says which, and why.
- **absent**: not here, and the reason.

What differs everywhere is not repeated at each row:

- Names are in snake_case; classes keep their names, but …Exception is …Error.
- Overloads are one method with keyword arguments. Where Java takes a `Named`, `name=` takes a text.
- Factories and fluent setters of option classes are keyword arguments of one frozen dataclass.
- Functional interfaces are plain callables. A mapper or joiner that also wants the key is marked: `with_key(function)`.
- Getters are properties or fields. Times are `int` milliseconds and end in `_ms`, durations are `timedelta`.
- An `Optional` is a value or `None`; `close()` is also the end of a `with` block.

"""


def render(judged: list[JudgedType], settings: list[JudgedSetting]) -> str:
    """Returns the whole page."""
    packages = list(dict.fromkeys(one.kafka.package for one in judged))
    by_package = {package: [one for one in judged if one.kafka.package == package] for package in packages}
    lines = [HEAD, *_summary(by_package)]
    for package, types in by_package.items():
        lines += ["", f"## {TITLES[package]}", "", *_package(types)]
    lines += ["", "## Settings", "", *_settings(settings), "", "## Only in Headrace", "", *_only_here(judged), ""]
    return "\n".join(lines).replace("\n\n\n", "\n\n")


def _summary(by_package: dict[str, list[JudgedType]]) -> Iterator[str]:
    """Counts types, and methods as the list counts them: without constructors and what is protected."""
    yield "| package | types | present | different | absent | methods | present | different | absent |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    rows = {f"[{package}](#{_anchor(TITLES[package])})": _counts(types) for package, types in by_package.items()}
    rows["**all**"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    for package, counts in rows.items():
        yield f"| {package} | {' | '.join(map(str, counts))} |"


def _counts(types: list[JudgedType]) -> list[int]:
    of_types = [one.verdict for one in types]
    of_methods = [
        verdict
        for one in types
        for method, verdict in one.methods
        if method.name != "constructor" and not method.protected
    ]
    return [*_tally(of_types), *_tally(of_methods)]


def _tally(verdicts: list[Verdict]) -> list[int]:
    return [len(verdicts), *(sum(one.status is status for one in verdicts) for status in Status)]


def _package(types: list[JudgedType]) -> Iterator[str]:
    for one in types:
        if not one.as_a_whole:
            yield from _type(one)
    for status in (Status.DIFFERENT, Status.ABSENT):
        some = [one for one in types if one.as_a_whole and one.verdict.status is status]
        if some:
            yield from (f"### {status.value.capitalize()} as a whole", "")
        for text in dict.fromkeys(one.verdict.text for one in some):
            yield from (f"**{status.value}**: {text}.", "")
            yield from (f"- {_with_members(one.kafka)}" for one in some if one.verdict.text == text)
            yield ""


def _type(one: JudgedType) -> Iterator[str]:
    yield f"### {one.kafka.name}{_note(one.kafka)}"
    yield ""
    if not one.verdict.found:
        yield f"**{one.verdict.status.value}**: {one.verdict.text}."
    for found in one.verdict.found:
        values = f" Values: {_listed(one.kafka.values)}." if one.kafka.values else ""
        yield f"`{public_path(found.name)}`: {found.summary}{values}"
    yield ""
    if one.methods:
        yield from _table((_kafka_method(method), verdict) for method, verdict in one.methods)
        yield ""


def _table(rows: Iterable[tuple[str, Verdict]]) -> Iterator[str]:
    yield "| Kafka Streams | | Headrace |"
    yield "|---|---|---|"
    for verdict, alike in groupby(rows, key=itemgetter(1)):
        yield f"| {', '.join(name for name, _ in alike)} | {verdict.status.value} | {_verdict(verdict)} |"


def _settings(settings: list[JudgedSetting]) -> Iterator[str]:
    yield "Each is a field of `StreamsConfig`; `StreamsConfig.of` also takes a mapping with Kafka's dotted names."
    yield ""
    yield from _table((f"`{one.key}`{_since(one.since)}", one.verdict) for one in settings)


def _only_here(judged: list[JudgedType]) -> Iterator[str]:
    known = {found.name for one in judged for found in _all_found(one)}
    yield "| Headrace | |"
    yield "|---|---|"
    for name in public_names():
        if name not in known:
            found = find(name)
            yield f"| `{_cell(found.call)}` | {_cell(found.summary)} |"


def _all_found(one: JudgedType) -> Iterator[Found]:
    for verdict in (one.verdict, *(verdict for _, verdict in one.methods)):
        yield from verdict.found


def _note(kafka: KafkaType) -> str:
    return _since(kafka.since) + (" (deprecated)" if kafka.deprecated else "")


def _since(version: str) -> str:
    return f" ({version})" if version else ""


def _with_members(kafka: KafkaType) -> str:
    names = [*kafka.values, *(method.name for method in kafka.methods)]
    return f"`{kafka.name}`{_note(kafka)}" + (f": {_listed(names)}" if names else "")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _kafka_method(method: Method) -> str:
    marks = [f"×{method.overloads}"] if method.overloads > 1 else []
    marks += [method.since] if method.since else []
    marks += ["protected"] if method.protected else []
    marks += ["deprecated"] if method.deprecated else []
    return f"`{method.name}`" + (f" ({', '.join(marks)})" if marks else "")


def _verdict(verdict: Verdict) -> str:
    if not verdict.found:
        return _cell(verdict.text or "as the type")
    return "<br>".join(
        f"`{one.call}`" + (f": {one.summary}" if one.summary else "") for one in map(_escaped, verdict.found)
    )


def _escaped(found: Found) -> Found:
    return replace(found, call=_cell(found.call), summary=_cell(found.summary))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _anchor(title: str) -> str:
    # As GitHub makes them: lower case, punctuation goes, spaces become dashes.
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")
