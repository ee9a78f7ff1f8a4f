"""`--job NAME` and `--with-needs`: which jobs of a manifest are read and run, as if it had no others.

Source: interface.md §4.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from bulk.errors import UsageError
from bulk.flaws import name_shown, unknown_name
from bulk.items.yaml_text import Node

OPTION = "--job"


def chosen_of(root: Node, names: Sequence[str], *, with_needs: bool) -> frozenset[str] | None:
    """Return the names of the chosen jobs; None: all jobs.

    Args:
        root: the whole manifest.
        names: the names given with `--job`.
        with_needs: take along the jobs that the chosen jobs need, and the jobs that those need.

    Raises:
        UsageError: the manifest has no such job, or `--with-needs` stands alone.
    """
    if not names:
        if with_needs:
            raise UsageError(f"--with-needs: takes along what chosen jobs need; choose some with {OPTION} NAME")
        return None
    jobs = root.plain().get("jobs")
    if not isinstance(jobs, dict):
        return frozenset(names)  # the flaw that there are no jobs is noted elsewhere
    for name in names:
        if name not in jobs:
            raise UsageError(f"{OPTION} {name_shown(name)}: {unknown_name(name, jobs, 'job')}")
    found, left = set(names), list(names)
    while left and with_needs:
        new = {need for need in _needs_of(jobs[left.pop()]) if need in jobs} - found
        found |= new
        left += new
    return frozenset(found)


def _needs_of(job: Any) -> Iterator[str]:
    """Yield the jobs that a job needs, by `needs` or for its items, as far as they can be read."""
    if not isinstance(job, dict):
        return
    items = job.get("items")
    given = [job.get("needs"), *((items.get("also"), [items.get("from")]) if isinstance(items, dict) else ())]
    for names in given:
        if isinstance(names, list):
            for name in names:
                yield from (inner for inner in (name if isinstance(name, dict) else (name,)) if isinstance(inner, str))
