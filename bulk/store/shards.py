"""Cuts a run into shards. Pure: numbers in, shards out.

Items that share a lane are always in one shard, because they must not overlap. Jobs of one resource whose items have
lanes are cut alike, so that a part of a later job waits for the same part of the earlier job and for nothing else. A
lane that is longer than a fair share is a shard of its own: it decides when the run ends, whichever worker has it.

If a job goes in waves, each shard has items of one wave alone, so that no worker can claim items of a wave that is not
open. Jobs are not cut together then: a later job comes after all waves of an earlier job of the same resource.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from msgspec.structs import replace

from bulk.store.leases import Kind, Shard

SHARD_ITEMS = 2_000
"""About how many items a shard has (count): claiming and finishing a shard costs a few round trips."""

MOST_SHARDS = 4_096
"""The most parts that one group, or one range of a wave, is cut into (count)."""

NO_LANE = -1
"""The rank of items that are in no lane, because a later item supersedes them: they go with the first part."""


UNKNOWN_ITEMS = -1
"""The number of items of a shard whose items are still to be made."""

_ALL_PARTS = -1


@dataclass(frozen=True, slots=True)
class JobToCut:
    """The facts about a job that the cut needs.

    Attributes:
        needs: numbers of the jobs that must be over before this one begins.
        items: how many items the job has (count).
        lanes: rank of a lane -> how many of the job's items are in it; None: the items have no lanes.
        copies: indexes of items that get the answer of an equal item, in order; only for jobs without lanes.
        is_made: whether its items are made from results, so that they are not known yet; `lanes` is empty or None then.
        ends: the index behind the last item of each wave; empty: the job is one wave. lanes_of: the `lanes` of each
            wave.
    """

    number: int
    resource: str
    needs: tuple[int, ...]
    items: int
    lanes: Mapping[int, int] | None = None
    copies: Sequence[int] = ()
    is_made: bool = False
    ends: Sequence[int] = ()
    lanes_of: Sequence[Mapping[int, int]] = ()

    @property
    def waves(self) -> Iterator[tuple[int, int]]:
        """The first index of each wave, and the index behind its last item."""
        return pairwise((0, *(self.ends or (self.items,))))


@dataclass(frozen=True, slots=True)
class Cut:
    """A run in shards.

    Attributes:
        groups: the group of each job, by the job's number.
        shards: all shards; the number of a shard is its place in this list.
    """

    groups: list[int]
    shards: list[Shard]


@dataclass(slots=True)
class _Group:
    jobs: list[JobToCut]
    stage: int
    needs: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Parts:
    """How the lanes of a resource are distributed: by the remainder of their rank, except the ranks in `apart`."""

    modulus: int
    apart: tuple[int, ...]


def cut(jobs: Sequence[JobToCut], shard_items: int = SHARD_ITEMS) -> Cut:
    """Cut a run into shards of about `shard_items` items each (count)."""
    groups = _groups(jobs)
    parts = _parts(jobs, shard_items)
    made: list[Shard] = []
    before: dict[tuple[str, int], int] = {}
    for number, group in enumerate(groups):
        if group.jobs[0].is_made:
            made.append(_make(group, number, len(made), before))
            continue
        if group.jobs[0].lanes is None:
            made += _ranges(group, number, len(made), shard_items)
            continue
        resource = group.jobs[0].resource
        modulus = parts[resource].modulus
        for wave, lanes in enumerate(_lanes_of(group), 1):
            sizes = _sizes(lanes, parts[resource])
            # shards are claimed in the order of their numbers: a long lane, which takes longest, begins first
            for part, items in sorted(sizes.items(), key=lambda size: (size[0] < modulus, size[0])):
                after = before.get((resource, part), before.get((resource, _ALL_PARTS)))
                before[resource, part] = len(made)
                shard = _lanes(group, number, len(made), parts[resource], part, items, after)
                made.append(replace(shard, wave=wave))
    numbers = {job.number: number for number, group in enumerate(groups) for job in group.jobs}
    return Cut([numbers[job.number] for job in jobs], made)


def _groups(jobs: Sequence[JobToCut]) -> list[_Group]:
    """Return the groups of jobs, in the order of their stages.

    Jobs with lanes that have the same resource and stage are in one group; each other job is a group of its own.
    """
    stages: dict[int, int] = {}
    latest: dict[str, int] = {}
    together: dict[tuple[str, int], _Group] = {}
    groups: list[_Group] = []
    is_in_waves = any(job.ends for job in jobs)
    for job in jobs:
        stage = max((stages[needed] + 1 for needed in job.needs), default=0)
        if job.is_made and job.lanes is not None:  # any of its lanes may be in any shard: it has a stage of its own
            stage = max(stage, latest.get(job.resource, -1) + 1)
            latest[job.resource] = stage + 1
        elif job.lanes is not None:
            stage = latest[job.resource] = max(stage, latest.get(job.resource, 0))
        stages[job.number] = stage
        is_joined = job.lanes is not None and not job.is_made and not is_in_waves
        group = together.get((job.resource, stage)) if is_joined else None
        if group is None:
            group = _Group([], stage)
            groups.append(group)
            if is_joined:
                together[job.resource, stage] = group
        group.jobs.append(job)
        group.needs.update(job.needs)
    return sorted(groups, key=lambda group: group.stage)


def _parts(jobs: Iterable[JobToCut], shard_items: int) -> dict[str, _Parts]:
    """Return how the lanes of each resource are distributed, counted over all its jobs."""
    lanes: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for job in jobs:
        for rank, items in (job.lanes or {}).items():
            lanes[job.resource][rank] += items
    parts: dict[str, _Parts] = {}
    for resource, sizes in lanes.items():
        total = sum(sizes.values())
        count = _count(total, shard_items)
        apart = sorted(rank for rank, items in sizes.items() if rank != NO_LANE and items * count > total)
        left = total - sum(sizes[rank] for rank in apart)
        parts[resource] = _Parts(_count(left, shard_items), tuple(apart) if count > 1 else ())
    return defaultdict(lambda: _Parts(1, ()), parts)


def _count(items: int, shard_items: int) -> int:
    return max(1, min(MOST_SHARDS, -(-items // shard_items)))


def _lanes_of(group: _Group) -> Iterator[Iterable[Mapping[int, int]]]:
    """Yield the lanes of the jobs of a group, wave by wave; a group of several jobs has one wave."""
    if len(group.jobs) == 1 and group.jobs[0].ends:
        yield from ((lanes,) for lanes in group.jobs[0].lanes_of)
    else:
        yield [job.lanes or {} for job in group.jobs]


def _sizes(all_lanes: Iterable[Mapping[int, int]], parts: _Parts) -> dict[int, int]:
    """Return how many items of these lanes are in each part (count); parts without items are left out."""
    sizes: dict[int, int] = defaultdict(int)
    places = {rank: parts.modulus + place for place, rank in enumerate(parts.apart)}
    for lanes in all_lanes:
        for rank, items in lanes.items():
            sizes[places[rank] if rank in places else 0 if rank == NO_LANE else rank % parts.modulus] += items
    return {part: items for part, items in sizes.items() if items}


def _lanes(group: _Group, number: int, no: int, parts: _Parts, part: int, items: int, after: int | None) -> Shard:
    needs, behind = tuple(sorted(group.needs)), () if after is None else (after,)
    if part >= parts.modulus:
        rank = parts.apart[part - parts.modulus]
        return Shard(
            no=no, kind=Kind.LANE, job_group=number, first=rank, behind=rank + 1, items=items, needs=needs, after=behind
        )
    return Shard(
        no=no,
        kind=Kind.LANES,
        job_group=number,
        modulus=parts.modulus,
        remainder=part,
        apart=parts.apart,
        items=items,
        needs=needs,
        after=behind,
    )


def _make(group: _Group, number: int, no: int, before: dict[tuple[str, int], int]) -> Shard:
    """Return the one shard of a job whose items are made from results, because its items are not known yet.

    If its items have lanes, it comes after all earlier shards of its resource and before all later ones.
    """
    (job,) = group.jobs
    after: tuple[int, ...] = ()
    if job.lanes is not None:
        mine = [key for key in before if key[0] == job.resource]
        after = tuple(sorted({before.pop(key) for key in mine}))
        before[job.resource, _ALL_PARTS] = no
    needs = tuple(sorted(group.needs))
    return Shard(no=no, kind=Kind.MAKE, job_group=number, items=UNKNOWN_ITEMS, needs=needs, after=after)


def _ranges(group: _Group, number: int, no: int, shard_items: int) -> list[Shard]:
    """Return shards with equal ranges of the items of one job, for each wave apart, and one with its copies."""
    (job,) = group.jobs
    needs, made = tuple(sorted(group.needs)), list[Shard]()
    for wave, first, behind in _spans(job, shard_items):
        copies = bisect_left(job.copies, behind) - bisect_left(job.copies, first)
        if behind - first > copies:
            made.append(
                Shard(
                    no=no + len(made),
                    kind=Kind.RANGE,
                    job_group=number,
                    first=first,
                    behind=behind,
                    items=behind - first - copies,
                    needs=needs,
                    wave=wave,
                )
            )
    if job.copies:
        after = tuple(shard.no for shard in made)
        copying = Shard(
            no=no + len(made), kind=Kind.COPIES, job_group=number, items=len(job.copies), needs=needs, after=after
        )
        made.append(copying)
    return made


def _spans(job: JobToCut, shard_items: int) -> Iterator[tuple[int, int, int]]:
    """Yield each range of a job: its wave, its first index, and the index behind its last item."""
    for wave, (start, end) in enumerate(job.waves, 1):
        count = _count(end - start, shard_items) if end > start else 0
        bounds = [start + (end - start) * place // count for place in range(count + 1)] if count else []
        yield from ((wave, first, behind) for first, behind in pairwise(bounds))
