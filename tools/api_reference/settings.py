"""Verdicts on the settings of Kafka Streams: the configuration itself knows most of them."""

from __future__ import annotations

from dataclasses import dataclass, fields

from headrace import StreamsConfig
from headrace.config.settings import CLIENT_SETTINGS, NO_EFFECT, Setting
from tools.api_reference.mapping import MappingError, Verdict, parse


@dataclass(frozen=True, slots=True)
class JudgedSetting:
    """A setting of Kafka Streams with its verdict."""

    key: str
    since: str
    verdict: Verdict


def judge(settings: dict[str, str], others: dict[str, str]) -> list[JudgedSetting]:
    """Gives verdicts on all settings; ``others`` is the mapping's section for what the configuration does not know."""
    known = _known()
    left = settings.keys() - known.keys()
    problems = [f"setting {key}: the mapping does not say why it is not here" for key in left - others.keys()]
    problems += [f"[settings] {key}: nothing is left for it" for key in others.keys() - left]
    if problems:
        raise MappingError("\n".join(sorted(problems)))
    return [JudgedSetting(key, since, parse((known | others)[key])) for key, since in settings.items()]


def _known() -> dict[str, str]:
    known = {key: f"absent: taken with a warning: {reason}" for key, reason in NO_EFFECT.items()}
    known |= dict.fromkeys(CLIENT_SETTINGS, "different: kept in `StreamsConfig.extras` for Kafka clients")
    for field in fields(StreamsConfig):
        setting: Setting | None = field.metadata.get("setting")
        keys = (field.name.replace("_", "."),) if setting is None else (setting.key, *setting.aliases)
        known |= dict.fromkeys(keys, f"present: StreamsConfig.{field.name}")
    return known
