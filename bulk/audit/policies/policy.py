"""A policy file: a SELECT that returns offending rows, and comments at its head that say what they mean.

-- policy: hooks-use-https
-- severity: error             error | warning | note
-- fail_if: > 0                or > 1% of items
-- key: org, id                identity of a row over time
-- message: {org}: hook {id} posts to {url}
SELECT …
"""

import functools
import re
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bulk.flaws import Flaws, shown, unknown_name
from bulk.items.lines import SourceFlaw
from bulk.items.sources import open_source

SEVERITIES = ("error", "warning", "note")
FIELDS = ("policy", "severity", "fail_if", "key", "message", "description")
MOST_BYTES = 256 * 1024
MOST_MESSAGE = 500
"""Longest message of a violation (characters)."""

_HEAD = re.compile(r"--\s*([a-z_]+)\s*:\s*(.*?)\s*$")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FAIL_IF = re.compile(r">\s*([0-9]+(?:\.[0-9]+)?)\s*(%\s+of\s+items)?")


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """One policy.

    Attributes:
        path: path of its file, as it is shown.
        fail_if: the policy fails where more rows than this are not waived (count, or percent of the run's items).
        is_share: whether `fail_if` is a percentage.
        key: columns that tell rows apart, over time.
        message: template of the text about a row, with `{column}`.
        columns: the columns of `key`, and those that `message` names.
    """

    name: str
    path: str
    sql: str
    severity: str
    key: tuple[str, ...]
    message: str
    fail_if: float = 0.0
    is_share: bool = False
    description: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that its rows have to have."""
        return tuple(dict.fromkeys((*self.key, *_columns_of(self.message))))

    def allowed(self, items: int) -> float:
        """Return how many rows the policy may have without failing (count), in a run of `items` items."""
        return items * self.fail_if / 100.0 if self.is_share else self.fail_if

    def said(self, row: Mapping[str, Any]) -> str:
        """Return the text about a row."""
        values = {name: _text(row.get(name)) for name in _columns_of(self.message)}
        text = self.message.format_map(values)
        return text if len(text) <= MOST_MESSAGE else f"{text[: MOST_MESSAGE - 1]}…"


def read_policies(patterns: Sequence[str], folder: Path) -> list[Policy]:
    """Return the policies that patterns such as `policies/*.sql` name, sorted by file.

    Raises:
        ManifestError: a pattern fits no file, or a file can't be used: with file and line.
    """
    flaws, found, seen = Flaws(), [], dict[str, str]()
    for pattern in patterns:
        paths = _paths(folder, pattern)
        if not paths:
            flaws.add(pattern, 0, "", f"no file fits this pattern of audit.policies, seen from {folder}")
        for path in paths:
            policy = _read(path, flaws)
            if policy is None:
                continue
            if policy.name in seen and seen[policy.name] != policy.path:
                flaws.add(policy.path, 1, "policy", f"{shown(policy.name)} is also the name of {seen[policy.name]}")
            elif policy.name not in seen:
                found.append(policy)
                seen[policy.name] = policy.path
    flaws.raise_if_any()
    return found


def _paths(folder: Path, pattern: str) -> list[Path]:
    path = Path(pattern)
    if path.is_absolute():
        return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    return sorted(folder.glob(pattern))


def _read(path: Path, flaws: Flaws) -> Policy | None:
    place = str(path)
    try:
        with open_source(path) as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        flaws.add(place, 0, "", "is not UTF-8")
        return None
    except SourceFlaw as flaw:
        flaws.add(place, 0, "", flaw.message)
        return None
    except OSError as error:
        flaws.add(place, 0, "", f"can't be read: {error.strerror}")
        return None
    if len(data) > MOST_BYTES:
        flaws.add(place, 0, "", f"larger than {MOST_BYTES // 1024} KiB, which no policy is")
        return None
    return policy_of(text, path.stem, place, flaws)


def policy_of(text: str, stem: str, place: str, flaws: Flaws) -> Policy | None:
    """Return the policy in a text; None, with flaws noted, where it can't be used."""
    before = len(flaws)
    given = _given_fields(text, place, flaws)
    name = _field(given, "policy", stem)
    if not _NAME.fullmatch(name[0]):
        flaws.add(place, name[1], "policy", "expected letters, digits, hyphens, underscores and dots, at most 100")
    severity = _field(given, "severity", "error")
    if severity[0] not in SEVERITIES:
        flaws.add(place, severity[1], "severity", f"expected {' or '.join(SEVERITIES)}, got {shown(severity[0])}")
    fail_if = _field(given, "fail_if", "> 0")
    limit = _FAIL_IF.fullmatch(fail_if[0])
    if limit is None:
        flaws.add(place, fail_if[1], "fail_if", f"expected > 10 or > 1% of items, got {shown(fail_if[0])}")
    keys = _field(given, "key", "")
    key = tuple(part.strip() for part in keys[0].split(",") if part.strip())
    if not key or not all(_COLUMN.fullmatch(part) for part in key):
        flaws.add(place, keys[1], "key", "expected the columns that tell rows apart, such as: -- key: org, id")
    message = _field(given, "message", ", ".join(f"{part} {{{part}}}" for part in key))
    flaw = _flaw_of_message(message[0])
    if flaw:
        flaws.add(place, message[1], "message", flaw)
    if len(flaws) > before or limit is None:
        return None
    return Policy(
        name=name[0],
        path=place,
        sql=text,
        severity=severity[0],
        key=key,
        message=message[0],
        fail_if=float(limit[1]),
        is_share=limit[2] is not None,
        description=_field(given, "description", "")[0],
    )


def _given_fields(text: str, place: str, flaws: Flaws) -> dict[str, tuple[str, int]]:
    """Return value and line of each field that the comments before a policy's first statement give."""
    given = dict[str, tuple[str, int]]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("--"):
            break
        head = _HEAD.match(line.strip())
        if head is None:
            continue
        if head[1] not in FIELDS:
            flaws.add(place, number, head[1], unknown_name(head[1], FIELDS))
        elif head[1] in given:
            flaws.add(place, number, head[1], f"is given twice, first in line {given[head[1]][1]}")
        else:
            given[head[1]] = head[2], number
    return given


def _field(given: Mapping[str, tuple[str, int]], name: str, default: str) -> tuple[str, int]:
    return given.get(name, (default, 1))


def _flaw_of_message(message: str) -> str:
    try:
        parts = list(string.Formatter().parse(message))
    except ValueError as error:
        return f"expected text with {{column}}: {error}"
    wrong = [name for _, name, spec, _ in parts if name is not None and (spec or not _COLUMN.fullmatch(name))]
    return f"expected the name of a column in braces, got {shown('{' + wrong[0] + '}')}" if wrong else ""


@functools.lru_cache(maxsize=1_000)
def _columns_of(message: str) -> tuple[str, ...]:
    return tuple(name for _, name, _, _ in string.Formatter().parse(message) if name)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
