"""Thousands of jobs are read in a time that grows with their number alone."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from bulk.flaws import Flaws
from bulk.items.yaml_text import Node
from bulk.manifest.fields import Fields
from bulk.manifest.jobs import jobs_of


class CountingName(str):
    """A name that counts how often it is compared with another one."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountingName.compared += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def compared(names: Sequence[str], *, is_chosen: bool) -> int:
    """How often names are compared while that many jobs are read, each of which needs the one before."""
    jobs: dict[str, Node] = {}
    for name in map(CountingName, names):
        job = {"operation": Node("readme.get", 1), "items": Node([], 1), "allow_empty": Node(value=True, line=1)}
        job |= {"needs": Node([Node(needed, 1) for needed in list(jobs)[-1:]], 1)} if jobs else {}
        jobs[name] = Node(job, 1)
    flaws = Flaws()
    CountingName.compared = 0
    jobs_of(Fields("m.yaml", Node(jobs, 1), "jobs", flaws), Path(), {"default": "env:T"}, jobs if is_chosen else None)
    flaws.raise_if_any()
    return CountingName.compared


@pytest.mark.parametrize("is_chosen", [False, True])
def test_no_job_is_compared_with_all_others(*, is_chosen: bool) -> None:
    """Twice as many jobs need at most about twice as many comparisons."""
    few, many = (compared([f"j{number}" for number in range(jobs)], is_chosen=is_chosen) for jobs in (50, 100))
    assert many < 2.5 * few + 10
