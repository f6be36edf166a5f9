"""``headrace plan-change``: what becomes of an application's stores if another topology takes over."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from headrace.change.topology_change import Evolution, apply_evolution, plan_evolution
from headrace.change.verdicts import Options
from headrace.cli.common_options import CommonOptions, common_options
from headrace.cli.printing import json_option, note, print_json, print_table
from headrace.cli.settings import read_settings, settings_options
from headrace.cli.targets import load_config, load_topology

_REFUSED = 1


@click.command("plan-change", short_help="Say what another topology does to an application's stores.")
@click.argument("target", metavar="MODULE:BUILD")
@click.option("--application-id", "-a", metavar="NAME", help="Name of the application. [default: that of the module]")
@click.option(
    "--rename",
    "renames",
    metavar="OLD=NEW",
    multiple=True,
    help="The store OLD is called NEW now, and takes its rows along. May be repeated.",
)
@click.option(
    "--rebuild",
    metavar="STORE",
    multiple=True,
    help="Read the inputs of a store again, from the beginning, and with it whatever is connected by repartitioning.",
)
@click.option(
    "--keep-bytes",
    metavar="STORE",
    multiple=True,
    help="The new serdes of a store read what the former ones have written. May be repeated.",
)
@click.option("--apply", "is_applied", is_flag=True, help="Make the change. Without it nothing is touched.")
@json_option
@settings_options
@common_options()
@click.pass_obj
def plan_change(
    common: CommonOptions,
    target: str,
    application_id: str | None,
    renames: tuple[str, ...],
    rebuild: tuple[str, ...],
    keep_bytes: tuple[str, ...],
    config_file: Path | None,
    assignments: tuple[str, ...],
    *,
    is_applied: bool,
    as_json: bool,
) -> int:
    """Compare a topology with the one that an application has run, and say what happens to each store.

    MODULE:BUILD is the new topology, as for 'headrace run'; the former one is known to the log. A store is kept,
    renamed, converted to another serde, rebuilt, new, dropped, or the change is refused, with the reason, and the exit
    code is 1. Names that were generated, and have shifted, are matched by what the nodes do.

    --apply makes the change. It is refused while the application runs. A change that was interrupted is finished by the
    same command.

    \b
      headrace plan-change shop.orders:build --rename counts=totals
      headrace plan-change shop.orders:build --rename counts=totals --apply
    """
    settings = common.settings() | read_settings(config_file, assignments)
    config = load_config(target, settings, application_id)
    options = Options(dict(map(_rename, renames)), frozenset(keep_bytes), frozenset(rebuild))
    topology = load_topology(target, config)
    with common.log(config=config) as log:
        evolution = plan_evolution(topology, config, log, options)
        is_refused = evolution.unfinished is None and evolution.comparison.is_refused
        if as_json:
            print_json(_as_json(evolution, is_refused=is_refused))
        else:
            _show(evolution)
        if is_refused:
            note("the change is refused; nothing was touched")
            return _REFUSED
        if is_applied and evolution.is_needed:
            apply_evolution(evolution, log, _command(config.application_id, target, options))
            note(f"application '{config.application_id}' was changed; start it with the new topology")
            return 0
    _conclude(evolution)
    return 0


def _conclude(evolution: Evolution) -> None:
    if evolution.unfinished is not None:
        note(f"a change was begun and is not finished; finish it: {evolution.unfinished.command}")
    elif not evolution.is_needed:
        note("nothing has to be changed; start the new topology")
    else:
        note("nothing was touched; --apply makes the change")


def _rename(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals or not old or not new:
        message = f"'{text}' names no two stores; write OLD=NEW, for example counts=totals"
        raise click.BadParameter(message, param_hint="--rename")
    return old, new


def _command(application: str, target: str, options: Options) -> str:
    words = ["headrace", "plan-change", target, "-a", application]
    words += _repeat_option("--rename", (f"{old}={new}" for old, new in options.renames.items()))
    words += _repeat_option("--rebuild", sorted(options.rebuild))
    words += _repeat_option("--keep-bytes", sorted(options.keep_bytes))
    return shlex.join([*words, "--apply"])


def _repeat_option(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _show(evolution: Evolution) -> None:
    comparison = evolution.comparison
    print_table(
        ("store", "", "what happens"), [(each.store, each.verdict.value, each.note) for each in comparison.stores]
    )
    click.echo("")
    print_table(
        ("sub-topology", "", "what happens"),
        [(str(each.part), each.verdict.value, each.note) for each in comparison.parts],
    )
    for problem in comparison.problems:
        click.echo(f"\nrefused: {problem}")


# Any: JSON.
def _as_json(evolution: Evolution, *, is_refused: bool) -> dict[str, Any]:
    comparison = evolution.comparison
    return {
        "application": evolution.application,
        "can_start": evolution.can_start,
        "is_needed": evolution.is_needed,
        "is_refused": is_refused,
        "is_unfinished": evolution.unfinished is not None,
        "stores": [
            {"store": each.store, "former": each.former, "verdict": each.verdict.value, "note": each.note}
            for each in comparison.stores
        ],
        "subtopologies": [
            {"subtopology": each.part, "former": list(each.former), "verdict": each.verdict.value, "note": each.note}
            for each in comparison.parts
        ],
        "problems": list(comparison.problems),
    }
