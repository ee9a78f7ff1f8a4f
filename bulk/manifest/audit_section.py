"""The part `audit` of a manifest: what `bulk audit` does beside the run. It is not part of a run's identity.

Source: interface.md §2.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bulk import quantities
from bulk.items.yaml_text import Node
from bulk.manifest import platform_section
from bulk.manifest.fields import Fields
from bulk.quantities import Share, kind_of

FAIL_ON = ("drift", "violation", "new-violation", "none")
EVENTS = ("drift", "violation", "failure", "recovery")
NONE: tuple[str, ...] = ()
_DAYS = re.compile(r"([0-9]{1,5})d")


@dataclass(frozen=True, slots=True)
class Target:
    """A target that is notified.

    Attributes:
        source: where the Apprise URL is, `env:NAME` or `file:PATH`, never the URL itself; empty where a command is run.
        command: program and arguments that get the message as JSON on standard input.
        on: events of which it is notified. details: messages also hold old and new values.
        remind_s: an event that still holds is told again after this time (seconds); None: never.
    """

    source: str = ""
    command: tuple[str, ...] = ()
    on: tuple[str, ...] = EVENTS
    details: bool = False
    remind_s: float | None = None


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """What an audit does with the results of each night.

    Attributes:
        policies: patterns of files, relative to the folder of the manifest. lines: of the manifest, by field.
        fail_on: events that make the exit code 7.
        ignore: fields of results whose changes are not drift, such as `result.html_url`.
        min_items: fewer items than this (a count, or a share of the last good night's) are refused; None: any number.
        keep_runs: nights whose run directories are kept (count). keep_tables_s: how long tables are kept (seconds).
    """

    policies: tuple[str, ...] = ()
    waivers: Path | None = None
    fail_on: tuple[str, ...] = ("drift", "violation")
    ignore: tuple[str, ...] = ()
    min_items: Share | None = None
    keep_runs: int = 30
    keep_tables_s: float = 400 * 86_400.0
    notify: tuple[Target, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)


def audit_of(part: Fields, folder: Path) -> AuditSettings:
    """Return the settings; flaws are noted in `part`.

    Args:
        folder: folder of the manifest.
    """
    usual = AuditSettings()
    waivers = part.text("waivers", None, str)
    keep = part.inner("keep")
    found = AuditSettings(
        policies=part.scalar("policies", NONE, lambda given: _texts(given, "[policies/*.sql]")),
        waivers=None if waivers is None else platform_section.absolute(waivers, folder),
        fail_on=part.scalar("fail_on", usual.fail_on, _fail_on),
        ignore=part.scalar("ignore", NONE, _fields),
        min_items=part.scalar("min_items", None, quantities.share),
        keep_runs=keep.scalar("runs", usual.keep_runs, lambda given: quantities.count(given, 1, 100_000)),
        keep_tables_s=keep.scalar("tables", usual.keep_tables_s, _days_s),
        notify=_targets(part, folder),
        lines={name: part.line_of(name) for name in ("policies", "waivers")},
    )
    keep.finish()
    part.finish()
    return found


def _targets(part: Fields, folder: Path) -> tuple[Target, ...]:
    node = part.node("notify")
    if node is None:
        return ()
    if not isinstance(node.value, list):
        part.flaw("notify", f"expected a list of targets, got {kind_of(node.plain())}")
        return ()
    return tuple(_target(part, number, entry, folder) for number, entry in enumerate(node.value))


def _target(part: Fields, number: int, node: Node, folder: Path) -> Target:
    fields = Fields(part.path, node, f"{part.full_name('notify')}[{number}]", part.flaws)
    command = fields.scalar("command", NONE, lambda given: _texts(given, "[./tell.sh, audits]"))
    found = Target(
        source=fields.text("to", "", lambda text: _source(text, folder)),
        command=command,
        on=fields.scalar("on", EVENTS, lambda given: _words(given, EVENTS)),
        details=fields.flag("details"),
        remind_s=fields.scalar("remind", None, _days_s),
    )
    if fields.is_object and ("to" in fields) == ("command" in fields):
        fields.flaw("", "expected exactly one of to (env:NAME or file:PATH of an Apprise URL) and command")
    fields.finish()
    return found


def _source(text: str, folder: Path) -> str:
    kind, _, rest = text.partition(":")
    if kind == "env" and rest:
        return text
    if kind == "file" and rest:
        return f"file:{platform_section.absolute(rest, folder)}"
    raise ValueError("expected env:NAME or file:PATH: the address of a target holds secrets, and stands in no manifest")


def _texts(given: Any, example: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not given or not all(isinstance(each, str) and each for each in given):
        raise ValueError(f"expected a list of texts, such as {example}")
    return tuple(given)


def _words(given: Any, known: tuple[str, ...]) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(each in known for each in given):
        raise ValueError(f"expected a list of some of {', '.join(known)}")
    return tuple(given)


def _fail_on(given: Any) -> tuple[str, ...]:
    found = _words(given, FAIL_ON)
    if "none" in found and len(found) > 1:
        raise ValueError("expected none alone, or without it what makes the exit code 7")
    return found


def _fields(given: Any) -> tuple[str, ...]:
    names = _texts(given, "[result.html_url]")
    for name in names:
        if not name.startswith("result."):
            raise ValueError(f"expected fields of results, such as result.html_url, got {name[:60]!r}")
    return names


def _days_s(given: Any) -> float:
    found = _DAYS.fullmatch(given) if isinstance(given, str) else None
    if found is None or not int(found[1]):
        raise ValueError("expected a number of days, such as 400d")
    return int(found[1]) * 86_400.0
