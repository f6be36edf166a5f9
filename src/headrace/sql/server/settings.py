"""The settings that clients may give, and their defaults."""

from __future__ import annotations

from dataclasses import fields
from functools import cache

from headrace.config import StreamsConfig
from headrace.config.settings import CLIENT_SETTINGS, PREFIXES
from headrace.errors import ConfigError, did_you_mean
from headrace.sql.connect.settings import DEFAULTS as CONNECT
from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions.literals import DEFAULT_TIMEOUT_MS, TIMEOUT_MS
from headrace.sql.hosting.statement_settings import NAMED, OF_STATEMENTS, STREAMS_PREFIX, streams_value
from headrace.sql.hosting.streams_host import SHUTDOWN_TIMEOUT_MS
from headrace.sql.planning.clause_checks import SUPPRESSION
from headrace.sql.reading.pull.clause_rules import PULL_QUERIES
from headrace.sql.server.errors import BAD_REQUEST, RequestError

FUNCTION_MODULES = "ksql.functions.python.modules"
"""The modules from which clients may make functions: names with commas between, ``*`` for all, by default none."""

KNOWN: dict[str, str] = {
    FUNCTION_MODULES: "",
    TIMEOUT_MS: str(DEFAULT_TIMEOUT_MS),
    SHUTDOWN_TIMEOUT_MS: "5000",
    PULL_QUERIES: "true",
    "ksql.service.id": "default_",
    "ksql.output.topic.name.prefix": "",
    "ksql.persistence.default.format.key": "KAFKA",
    "ksql.persistence.default.format.value": "",
    "ksql.persistence.wrap.single.values": "true",
    "ksql.new.query.planner.enabled": "false",
    "ksql.timestamp.throw.on.invalid": "false",
    "ksql.functions.substring.legacy.args": "false",
    "ksql.functions.collect_list.limit": "1000",
    "ksql.functions.collect_set.limit": "1000",
    "ksql.query.pull.enable.standby.reads": "false",
    "ksql.query.pull.extensions.enabled": "true",
    "ksql.query.pull.limit.clause.enabled": "true",
    "ksql.query.pull.range.scan.enabled": "true",
    "ksql.query.pull.stream.enabled": "true",
    "ksql.query.pull.table.scan.enabled": "true",
    "ksql.query.push.v2.enabled": "true",
    "ksql.schema.registry.url": "",
    **CONNECT,
    "ksql.streams.auto.offset.reset": "earliest",
    "ksql.variable.substitution.enable": "true",
    "ksql.headers.columns.enabled": "true",
    SUPPRESSION: "true",
}
"""Settings of the language, with their defaults."""

_OPERATORS = frozenset(
    {
        FUNCTION_MODULES,
        TIMEOUT_MS,
        SHUTDOWN_TIMEOUT_MS,
        PULL_QUERIES,
        "ksql.service.id",
        "ksql.schema.registry.url",
        *CONNECT,
    }
)
"""Settings of the language that only the operator gives, when a server is started."""
_SECRET = ("password", "secret", "jaas", "user.info", "credentials")
"""Parts of the names of settings that nobody is shown."""
_HIDDEN = "[hidden]"


def statement_settings() -> list[str]:
    """Returns the names of all settings that statements and requests may give.

    >>> [name for name in statement_settings() if "offset.reset" in name]
    ['auto.offset.reset', 'consumer.auto.offset.reset', 'ksql.streams.auto.offset.reset', ...]
    """
    return sorted({*OF_STATEMENTS, *KNOWN} - _OPERATORS)


def is_known(name: str) -> bool:
    """Tells whether there is a setting of that name.

    >>> is_known("auto.offset.reset"), is_known("num.standby.replicas"), is_known("auto.ofset.reset")
    (True, True, False)
    """
    plain = name.removeprefix(STREAMS_PREFIX)
    if name in KNOWN or plain in OF_STATEMENTS or plain in _streams_names():
        return True
    if plain in CLIENT_SETTINGS or plain.startswith(PREFIXES):
        return True
    # ksqlDB has many more of its own, which mean nothing here; a program that sets them must still run.
    return name == plain and name.startswith("ksql.")


@cache
def _streams_names() -> frozenset[str]:
    known = (each.metadata["setting"] for each in fields(StreamsConfig) if "setting" in each.metadata)
    return frozenset({name for setting in known for name in (setting.key, *setting.aliases)})


def is_editable(name: str) -> bool:
    """Tells whether a client may set it.

    >>> is_editable("commit.interval.ms"), is_editable("ksql.streams.state.dir"), is_editable("spark.pyspark.python")
    (True, False, False)
    """
    if name in KNOWN:
        return name not in _OPERATORS
    plain = name.removeprefix(STREAMS_PREFIX)
    return plain in OF_STATEMENTS or (name == plain and name.startswith("ksql."))


def shown_value(name: str, value: object) -> object:
    """Returns what may be shown of a setting: everything but secrets.

    >>> shown_value("ksql.streams.sasl.password", "sesame"), shown_value("ksql.service.id", "shop_")
    ('[hidden]', 'shop_')
    """
    # Those of the language say at most where a secret is.
    is_secret = name not in KNOWN and any(part in name.lower() for part in _SECRET)
    return _HIDDEN if is_secret and value else value


def check_setting(name: str, value: object) -> None:
    """Raises ``RequestError`` if a client may not set this."""
    found = refusal(name, value)
    if found is not None:
        raise RequestError(BAD_REQUEST, found)


def refusal(name: str, value: object) -> str | None:
    """Returns why a client may not set this; None if it may.

    >>> refusal("spark.pyspark.python", "/tmp/python")
    "Cannot override property 'spark.pyspark.python': it is a setting of the server, given when it is started..."
    """
    if not is_known(name):
        hint = did_you_mean(name, [*KNOWN, *OF_STATEMENTS, *_streams_names()])
        return f"Not recognizable as ksql, streams, consumer, or producer property: '{name}'{hint}"
    if not is_editable(name):
        return (
            f"Cannot override property '{name}': it is a setting of the server, given when it is started; "
            f"statements and requests may set {', '.join(statement_settings())}"
        )
    plain = name.removeprefix(STREAMS_PREFIX)
    if plain.endswith("auto.offset.reset") and str(value).lower() not in ("earliest", "latest", "none"):
        return f"Invalid value {value} for property {plain}: String must be one of: earliest, latest, none"
    if plain in NAMED and (not isinstance(value, str) or streams_value(plain, value) is value):
        return f"Invalid value {value} for property {plain}: String must be one of: {', '.join(NAMED[plain])}"
    if plain in OF_STATEMENTS and not plain.endswith("auto.offset.reset"):
        try:
            StreamsConfig.of({plain: streams_value(plain, value)})
        except ConfigError as error:
            return f"Invalid value {value} for property {plain}: {error}"
    return None


def check_function_module(target: str, allowed: str) -> None:
    """Raises ``SqlStatementError`` if functions may not be made from the module of ``module:name``.

    Whoever imports a module runs its code, so a server does it only for modules that it was told to trust.

    >>> check_function_module("shop.prices:net", "shop, audit")
    >>> check_function_module("os:system", "shop")
    Traceback (most recent call last):
    ...
    headrace.sql.errors.SqlStatementError: functions of the module 'os' are not allowed on this server; ...
    """
    module = target.partition(":")[0]
    names = [name.strip() for name in allowed.split(",") if name.strip()]
    if not any(name == "*" or module == name or module.startswith(f"{name}.") for name in names):
        message = (
            f"functions of the module '{module}' are not allowed on this server; "
            f"start it with --set {FUNCTION_MODULES}={module}"
        )
        raise SqlStatementError(message)
