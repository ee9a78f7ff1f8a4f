"""Checks items against each other: items that decide about the same thing, and new names that look alike.

Only operations that say what their items decide are asked. What they say is kept as hashes in a temporary SQLite file,
so that memory does not grow with the items; the two items of a pair are read again from where they were checked.
Source: failures.md rows 54 and 56, operations.md.
"""

import contextlib
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from bulk.bundle.checked import Checked
from bulk.bundle.index import short_63
from bulk.bundle.reread import Places
from bulk.capabilities import Conflict, CreatesNames, DecidesState
from bulk.flaws import shown
from bulk.manifest.manifest import Job
from bulk.operation import AnyOperation, Item
from bulk.storage.temporary_rows import TemporaryRows

MOST_ALIKE = 5
"""At most this many pairs of names that look alike are told one by one (count)."""


_SINGLE = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "5": "s", "_": "-"})
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))


class Spot(NamedTuple):
    """An item: its job's number, its index, offset and size of its JSON (bytes), its line, a hash of its content."""

    job: int
    item: int
    at: int
    size: int
    line: int
    payload: int


class ConflictFinder(TemporaryRows):
    """Collects what items decide and the names that they make, for `pairs` and `alike`. A context manager."""

    def __init__(self) -> None:
        super().__init__(
            "CREATE TABLE decided (thing INTEGER, number INTEGER, job INTEGER, item INTEGER, at INTEGER, size INTEGER, "
            "line INTEGER, payload INTEGER); CREATE TABLE names (looks INTEGER, same INTEGER, job INTEGER, name TEXT);",
            "decided",
        )
        self._number = 0

    def add(self, operation: AnyOperation, item: Item, spot: Spot) -> None:
        """Add the things that one item decides about, and the names that it makes. Items come in running order."""
        self._number += 1
        resource = operation.resource
        if isinstance(operation, DecidesState):
            for thing in operation.identities(item):
                self.keep((short_63(resource, thing), self._number, *spot))
        if isinstance(operation, CreatesNames):
            for name in operation.new_names(item):
                looks, same = (short_63(resource, text) for text in (skeleton(name), name.casefold()))
                shown = name.encode("utf-8", "replace").decode()
                self._database.execute("INSERT INTO names VALUES (?, ?, ?, ?)", (looks, same, spot.job, shown))

    def pairs(self) -> Iterator[tuple[Spot, Spot]]:
        """Yield neighbours: an item, and the next one that decides about the same thing and asks for something else."""
        columns = "{0}.job, {0}.item, {0}.at, {0}.size, {0}.line, {0}.payload"
        query = f"""
            SELECT DISTINCT earlier.number, later.number, {columns.format("earlier")}, {columns.format("later")}
            FROM (SELECT *, lag(rowid) OVER (PARTITION BY thing ORDER BY number) AS before FROM decided
                  WHERE thing IN (SELECT thing FROM decided GROUP BY thing HAVING count(*) > 1)) AS later
            JOIN decided AS earlier ON earlier.rowid = later.before
            WHERE earlier.payload != later.payload ORDER BY later.number, earlier.number"""
        for _, _, *values in self.select(query):
            yield Spot(*values[:6]), Spot(*values[6:])

    def alike(self) -> Iterator[tuple[int, str, str]]:
        """Yield (job of the later name, a name, the later name) for names that look alike and are not the same."""
        query = """
            SELECT looks, min(job), min(name), min(rowid) FROM names
            WHERE looks IN (SELECT looks FROM names GROUP BY looks HAVING count(DISTINCT same) > 1)
            GROUP BY looks, same ORDER BY looks, min(rowid)"""
        for (looks, _, earlier, _), (same_looks, job, later, _) in pairwise(self.select(query)):
            if looks == same_looks:
                yield job, earlier, later


def decides(job: Job) -> bool:
    """Return whether items of this job are checked against others."""
    return isinstance(job.operation, DecidesState | CreatesNames)


def conflicts(finder: ConflictFinder, checked: Checked, workspace: Path) -> Iterator[tuple[Spot, Spot, Conflict]]:
    """Yield pairs of items that can't both be meant, in the order of the later item. Where the manifest asks for the
    order, overwriting may be meant.

    Args:
        checked: the check as far as it has come: jobs and their sources.

    Raises:
        RunDirectoryError: an items file was edited meanwhile.
    """
    jobs = checked.manifest.jobs
    before = _before(jobs)
    with contextlib.closing(Places(checked, workspace)) as places:
        for earlier, later in finder.pairs():
            job = jobs[later.job]
            assert isinstance(job.operation, DecidesState), "others have no identities"
            items = [places.of(spot.job).entry(spot.item, spot.at, spot.size).item for spot in (earlier, later)]
            found = job.operation.conflict(*items)
            is_meant = job.allow_overwrites or before[later.job] >> earlier.job & 1
            if found is not None and not (found.may_insist and is_meant):
                yield earlier, later, found


def told(found: Conflict, other: str) -> str:
    """Return the message about the later item; `other` names the earlier one."""
    insist = "; allow_overwrites: true lets it pass, or needs between two jobs" if found.may_insist else ""
    return f"{found.message.replace('{other}', other)} (counted from 0){insist}"


def _before(jobs: Sequence[Job]) -> list[int]:
    """Return for each job the jobs that are complete before it starts, one bit for each: `needs` says that this order
    is meant.
    """
    numbers = {job.name: job.number for job in jobs}
    found: list[int] = []
    for job in jobs:
        before = 0
        for name in job.needs:
            before |= found[numbers[name]] | 1 << numbers[name]
        found.append(before)
    return found


def skeleton(name: str) -> str:
    """Return a form that is the same for names that look alike in ordinary fonts, such as `acme-web` and
    `acrne-web`."""
    folded = unicodedata.normalize("NFKC", name).casefold().translate(_SINGLE)
    for several, one in _PAIRS:
        folded = folded.replace(several, one)
    return folded


def notes_on_names(finder: ConflictFinder, jobs: Sequence[Job]) -> Iterator[str]:
    """Yield a sentence for each pair of new names that look alike; never more than a note, because both may be
    meant."""
    alike = finder.alike()
    for job, earlier, later in islice(alike, MOST_ALIKE):
        yield (
            f"job {jobs[job].name}: {shown(later)} looks like {shown(earlier)}, "
            "another new name of this manifest: see that both are meant"
        )
    more = sum(1 for _ in alike)
    if more:
        yield f"{more:,} more new names look like others"
