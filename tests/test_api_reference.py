"""`docs/api.md` covers the whole API of Kafka Streams, names only what exists, and is up to date."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

from tools.api_reference import checklist, mapping, settings
from tools.api_reference.checklist import Checklist, KafkaType, Method
from tools.api_reference.docstrings import first_sentence
from tools.api_reference.mapping import JudgedType, Mapping, MappingError, Status, parse, snake_case
from tools.api_reference.package import UnknownNameError, find, public_path
from tools.api_reference.reference import PAGE, reference

# Kept beside the project while it is developed; a clone has only the project's own list.
SOURCE_OF_THE_LIST = Path(__file__).parents[2] / "shared" / "reference" / "KAFKA_STREAMS_API.md"
MODEL = ("kstream", "processor", "processor.api", "state", "test-utils")
# What the mapping calls "not yet"; each is to be made, and then to be taken off here and there.
GAPS: set[str] = set()


@pytest.fixture(scope="module")
def judged() -> list[JudgedType]:
    sections = mapping.load()
    sections.pop("settings")
    return Mapping(sections).judge(checklist.load())


def judge(sections: dict[str, dict[str, str]], *types: KafkaType) -> list[JudgedType]:
    return Mapping(sections).judge(Checklist(types, {}))


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "run `make docs`"


def test_the_list_has_as_many_types_and_methods_as_kafka_streams() -> None:
    listed = checklist.load()
    methods = [method for kafka in listed.types for method in kafka.methods]
    counted = [method for method in methods if method.name != "constructor" and not method.protected]
    assert (len(listed.types), len(counted)) == (274, 1037)


@pytest.mark.skipif(not SOURCE_OF_THE_LIST.exists(), reason="the list that ours was made from is not here")
def test_the_list_names_everything_that_its_source_names() -> None:
    text = SOURCE_OF_THE_LIST.read_text(encoding="utf-8").partition("## 10.")[0]
    rows = [*re.findall(r"^#### `([\w.]+)`", text, re.M), *re.findall(r"^\| ☐ \| `(\w+)`", text, re.M)]
    ours = [name for kafka in checklist.load().types for name in (kafka.name, *(one.name for one in kafka.methods))]
    # Two generations of the mock context have one name there.
    assert sorted(rows) == sorted(re.sub(r"^processor\.(api\.)?", "", name) for name in ours)


def test_every_method_has_a_verdict_with_a_name_or_a_reason(judged: list[JudgedType]) -> None:
    for one in judged:
        assert one.verdict.found or one.verdict.text, one.kafka.id
        for method, verdict in one.methods:
            assert verdict.found or verdict.text or verdict.inherited, f"{one.kafka.id}.{method.name}"


def test_only_the_known_gaps_of_the_model_are_absent_without_a_reason(judged: list[JudgedType]) -> None:
    later = {
        f"{one.kafka.id}.{name}".removesuffix(".")
        for one in judged
        if one.kafka.package in MODEL
        for name, verdict in [("", one.verdict), *((method.name, verdict) for method, verdict in one.methods)]
        if verdict.status is Status.ABSENT and verdict.text.startswith("not yet")
    }
    assert later == GAPS


def test_every_setting_has_a_verdict() -> None:
    listed = checklist.load().settings
    assert [one.key for one in settings.judge(listed, mapping.load()["settings"])] == list(listed)


def test_a_setting_without_a_verdict_is_refused() -> None:
    with pytest.raises(MappingError, match=r"setting made\.up: the mapping does not say why"):
        settings.judge({"made.up": ""}, {})


def test_a_type_of_the_same_name_is_present_with_methods_in_snake_case() -> None:
    [one] = judge({}, KafkaType("kstream", "KStream", (Method("mapValues"),)))
    assert one.verdict.status is Status.PRESENT
    assert [found.name for found in one.methods[0][1].found] == ["KStream.map_values"]


def test_a_method_that_is_not_there_is_refused() -> None:
    with pytest.raises(MappingError, match=r"kstream\.KStream\.through: not found"):
        judge({}, KafkaType("kstream", "KStream", (Method("through"),)))


def test_a_type_that_is_not_there_is_refused() -> None:
    with pytest.raises(MappingError, match=r"kstream\.Sluice: there is no Sluice in Headrace"):
        judge({}, KafkaType("kstream", "Sluice"))


def test_a_value_that_an_enum_does_not_have_is_refused() -> None:
    with pytest.raises(MappingError, match="there is no value MOON_PHASE"):
        judge({}, KafkaType("processor", "PunctuationType", values=("STREAM_TIME", "MOON_PHASE")))


def test_what_is_here_cannot_be_called_absent() -> None:
    sections = {
        "kstream.KStream": {"filter": "absent: nobody needs it"},
        "kstream.KTable": {"_type": "absent: the same"},
    }
    with pytest.raises(MappingError, match="is absent, but it is here") as caught:
        judge(sections, KafkaType("kstream", "KStream", (Method("filter"),)), KafkaType("kstream", "KTable"))
    assert len(str(caught.value).splitlines()) == 2


def test_an_entry_for_nothing_is_refused() -> None:
    with pytest.raises(MappingError, match=r"\[kstream\.KStream\] through: nothing is left for it"):
        judge({"kstream.KStream": {"through": "absent: removed"}}, KafkaType("kstream", "KStream"))


def test_methods_share_the_fate_of_a_type_that_is_absent() -> None:
    sections = {"query.*": {"_type": "absent: comes later"}}
    [one] = judge(sections, KafkaType("query", "QueryConfig", (Method("withKey"),)))
    assert one.as_a_whole
    assert one.methods[0][1].status is Status.ABSENT


def test_the_most_precise_entry_wins() -> None:
    sections = {
        "kstream.*": {"with*": "different: keyword `Grouped({*}=)`", "withOther*": "absent: other"},
        "kstream.Grouped": {"withName": "different: itself"},
    }
    methods = (Method("withKeySerde"), Method("withName"), Method("withOtherName"))
    [one] = judge(sections, KafkaType("kstream", "Grouped", methods))
    assert [verdict.text for _, verdict in one.methods] == ["keyword `Grouped(key_serde=)`", "itself", "other"]


@pytest.mark.parametrize("text", ["`KStream.through`", "`Sluice`", "`Grouped(nickname=)`", "`KStream.join(nickname=)`"])
def test_names_in_a_reason_must_exist(text: str) -> None:
    with pytest.raises(UnknownNameError):
        parse(f"different: use {text}")


def test_a_value_that_is_no_verdict_is_refused() -> None:
    with pytest.raises(ValueError, match="perhaps"):
        parse("perhaps: later")


def test_calls_show_their_parameters_and_their_first_sentence() -> None:
    found = find("KStream.filter")
    assert found.call == "KStream.filter(predicate, *, name=None)"
    assert found.summary.startswith("Keeps the records")


def test_fields_have_the_string_under_them_as_summary() -> None:
    assert find("Record.timestamp_ms").summary == "Event time; not negative."


def test_private_and_merely_imported_names_are_not_offered() -> None:
    for name in ("KStream._append", "errors.Iterable", "dataclass"):
        with pytest.raises(UnknownNameError):
            find(name)


def test_names_are_imported_from_the_package_or_else_from_the_module_that_offers_them() -> None:
    assert public_path("KStream") == "headrace.KStream"
    assert public_path("MemoryEngine") == "headrace.state.MemoryEngine"


def test_java_names_become_python_names() -> None:
    assert [snake_case(name) for name in ("groupByKey", "to", "windowsFor")] == ["group_by_key", "to", "windows_for"]


def test_first_sentence_ends_at_the_paragraph_at_the_latest() -> None:
    assert first_sentence("One. Two.") == "One."
    assert first_sentence("No full stop\n\nMore.") == "No full stop"


@pytest.mark.parametrize("module", ["docstrings", "mapping", "package"])
def test_examples_in_the_generator_run(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"tools.api_reference.{module}"))
    assert results.attempted > 0
    assert results.failed == 0
