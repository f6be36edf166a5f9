"""The settings that clients may give, and their defaults."""

from __future__ import annotations

from headrace.config import StreamsConfig
from headrace.errors import ConfigError, did_you_mean
from headrace.sql.connect.settings import DEFAULTS as CONNECT
from headrace.sql.expressions.literals import DEFAULT_TIMEOUT_MS, TIMEOUT_MS
from headrace.sql.hosting.streams_host import SHUTDOWN_TIMEOUT_MS
from headrace.sql.server.errors import BAD_REQUEST, BAD_STATEMENT, RequestError

FUNCTION_MODULES = "ksql.functions.python.modules"
"""The modules from which clients may make functions: names with commas between, ``*`` for all, by default none."""

KNOWN: dict[str, str] = {
    FUNCTION_MODULES: "",
    TIMEOUT_MS: str(DEFAULT_TIMEOUT_MS),
    SHUTDOWN_TIMEOUT_MS: "5000",
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
}
"""Settings of the language, with their defaults."""

_FIXED = frozenset(
    {FUNCTION_MODULES, TIMEOUT_MS, SHUTDOWN_TIMEOUT_MS, "ksql.service.id", "ksql.schema.registry.url", *CONNECT}
)
"""What a request cannot set."""
_SECRET = ("password", "secret", "jaas", "user.info", "credentials")
"""Parts of the names of settings that nobody is shown."""
_HIDDEN = "[hidden]"
_PREFIXES = ("ksql.streams.", "ksql.functions.", "ksql.query.", "consumer.", "producer.", "main.consumer.", "spark.")
_CONSUMER = frozenset({"auto.offset.reset"})


def is_known(name: str) -> bool:
    """Tells whether there is a setting of that name.

    >>> is_known("auto.offset.reset"), is_known("num.standby.replicas"), is_known("auto.ofset.reset")
    (True, True, False)
    """
    if name in KNOWN or name in _CONSUMER or name.startswith(_PREFIXES):
        return True
    # ksqlDB has many more of its own, which mean nothing here; a program that sets them must still run.
    return name.startswith("ksql.") or _is_of_streams(name)


def _is_of_streams(name: str) -> bool:
    return name in StreamsConfig().to_mapping() or name in _ALIASES


_ALIASES = frozenset({"cache.max.bytes.buffering", "bootstrap.servers", "commit.interval.ms"})


def is_editable(name: str) -> bool:
    """Tells whether a client may set it."""
    return name not in _FIXED


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
    if not is_known(name):
        names = [*KNOWN, *_CONSUMER, *StreamsConfig().to_mapping()]
        hint = did_you_mean(name, names)
        message = f"Not recognizable as ksql, streams, consumer, or producer property: '{name}'{hint}"
        raise RequestError(BAD_REQUEST, message)
    if not is_editable(name):
        raise RequestError(BAD_REQUEST, f"Cannot override property '{name}': it is a setting of the server")
    plain = name.removeprefix("ksql.streams.")
    if plain == "auto.offset.reset" and str(value).lower() not in ("earliest", "latest", "none"):
        message = f"Invalid value {value} for property {plain}: String must be one of: earliest, latest, none"
        raise RequestError(BAD_REQUEST, message)
    if _is_of_streams(plain):
        try:
            StreamsConfig.of({plain: value})
        except ConfigError as error:
            raise RequestError(BAD_REQUEST, f"Invalid value {value} for property {plain}: {error}") from error


def check_function_module(target: str, allowed: str) -> None:
    """Raises ``RequestError`` if clients may not make functions from the module of ``module:name``.

    Whoever imports a module runs its code, so a server does it only for modules that it was told to trust.

    >>> check_function_module("shop.prices:net", "shop, audit")
    >>> check_function_module("os:system", "shop")
    Traceback (most recent call last):
    ...
    headrace.sql.server.errors.RequestError: functions of the module 'os' are not allowed on this server; ...
    """
    module = target.partition(":")[0]
    names = [name.strip() for name in allowed.split(",") if name.strip()]
    if not any(name == "*" or module == name or module.startswith(f"{name}.") for name in names):
        message = (
            f"functions of the module '{module}' are not allowed on this server; "
            f"start it with --set {FUNCTION_MODULES}={module}"
        )
        raise RequestError(BAD_STATEMENT, message)
