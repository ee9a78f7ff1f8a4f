"""What a journal says: windows of a budget, effects, overlaps. Pure; times are UTC epoch seconds of the sandbox."""

import itertools
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

Line = Mapping[str, Any]


def arrived(line: Line) -> float:
    """When the request came in."""
    return datetime.fromisoformat(line["at"]).timestamp()


def answered(line: Line) -> float:
    """When its answer was on its way."""
    return arrived(line) + float(line["elapsed_ms"]) / 1_000.0


def windows(lines: Iterable[Line], category: str) -> list[list[Line]]:
    """The requests that `category` paid for, split where the budget became full again.

    A line says what remains while it is written, and lines are in the order of writing: within a window the number
    falls (a 304, which is given back, is left out).
    """
    found: list[list[Line]] = []
    for line in lines:
        if line["category"] != category or line["status"] == 304:
            continue
        if not found or line["remaining"] > found[-1][-1]["remaining"]:
            found.append([])
        found[-1].append(line)
    return found


def span_s(lines: Sequence[Line]) -> float:
    """From the first arrival to the last answer (seconds)."""
    return max(map(answered, lines)) - min(map(arrived, lines))


def effects(lines: Iterable[Line], kind: str = "") -> list[str]:
    """Every effect that begins with `kind`, in order; a commit without its sha, so that a second one shows."""
    found = [line["effect"] for line in lines if line["effect"] and line["effect"].startswith(kind)]
    return [" ".join(effect.split()[:3]) if effect.startswith("commit ") else effect for effect in found]


def overlaps(lines: Iterable[Line]) -> Iterator[tuple[Line, Line]]:
    """Neighbours that were under way at once."""
    ordered = sorted(lines, key=arrived)
    for first, second in itertools.pairwise(ordered):
        if arrived(second) < answered(first):
            yield first, second


def git(state: Path, full_name: str, *arguments: str) -> str:
    """What `git` says about a repository of the sandbox's state."""
    owner, _, name = full_name.partition("/")
    repository = state / "repositories" / owner / f"{name}.git"
    done = subprocess.run(["git", "-C", repository, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def changed_files(state: Path, full_name: str) -> list[str]:
    """The files that its commits on `main` changed, oldest first, without the first commit; one for each change."""
    log = git(state, full_name, "log", "--reverse", "--format=commit %H", "--name-only", "main")
    commits = log.split("commit ")[2:]
    return [path for commit in commits for path in commit.split("\n")[1:] if path]
