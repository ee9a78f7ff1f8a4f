"""A run in shards: every item in one of them, lanes whole, and order kept where it matters."""

from collections import Counter
from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from bulk.store.holding import Holding, Span
from bulk.store.leases import Kind, Shard
from bulk.store.shards import NO_LANE, UNKNOWN_ITEMS, Cut, JobToCut, cut


def job(number: int, *, resource: str = "file", needs: tuple[int, ...] = (), **more) -> JobToCut:
    """A job; with `lanes` its items are those."""
    lanes, given_items = more.get("lanes"), more.pop("items", 0)
    items = given_items if lanes is None else sum(lanes.values())
    return JobToCut(number, resource, needs, items, **more)


def has_rank(shard: Shard, rank: int) -> bool:
    """Whether a shard of lanes has the lane of that rank."""
    if shard.kind is Kind.LANE:
        return rank == shard.first
    if rank == NO_LANE:
        return shard.remainder == 0
    return rank % shard.modulus == shard.remainder and rank not in shard.apart


def holds(shard: Shard, made: Cut, each: JobToCut, rank: int) -> bool:
    """Whether a shard has the items of that job in the lane of that rank."""
    return made.groups[each.number] == shard.job_group and has_rank(shard, rank)


JOBS = st.lists(
    st.tuples(
        st.sampled_from(["file", "org"]),
        st.none() | st.dictionaries(st.integers(NO_LANE, 40), st.integers(1, 30), max_size=20),
        st.integers(0, 100),
        st.integers(0, 3),
    ),
    max_size=6,
)


def test_a_long_lane_is_claimed_first():
    """It takes longest, and shards are claimed by their numbers."""
    made = cut([job(0, lanes={1: 60, **dict.fromkeys(range(2, 12), 6)})], 50)
    assert [shard.kind for shard in made.shards] == [Kind.LANE, Kind.LANES, Kind.LANES]


@given(JOBS, st.integers(1, 50))
def test_each_item_is_in_one_shard(drawn, shard_items):
    """Counts add up, lanes are whole, ranges leave no hole, numbers are places, and nothing waits for itself."""
    jobs = [
        job(number, resource=resource, lanes=lanes, items=items, needs=(number - back,) if 0 < back <= number else ())
        for number, (resource, lanes, items, back) in enumerate(drawn)
    ]
    made = cut(jobs, shard_items)
    assert [shard.no for shard in made.shards] == list(range(len(made.shards)))
    assert all(after < shard.no for shard in made.shards for after in shard.after)
    expected: Counter[int] = Counter()
    for each in jobs:
        expected[made.groups[each.number]] += each.items
        mine = [shard for shard in made.shards if shard.job_group == made.groups[each.number]]
        if each.lanes is None:
            ends = [(shard.first, shard.behind) for shard in mine]
            assert [first for first, _ in ends] == [0, *(behind for _, behind in ends)][: len(ends)]
            assert not ends or ends[-1][1] == each.items
        for rank in each.lanes or {}:
            assert sum(holds(shard, made, each, rank) for shard in mine) == 1
    sums: Counter[int] = Counter()
    for shard in made.shards:
        sums[shard.job_group] += shard.items
        assert shard.items > 0
        members = [each for each in jobs if made.groups[each.number] == shard.job_group]
        assert set(shard.needs) == {need for each in members for need in each.needs}
    assert +sums == +expected


@given(JOBS, st.integers(1, 50))
def test_a_lane_keeps_its_order_over_jobs(drawn, shard_items):
    """The later job's part of a lane waits for the earlier one's, unless both are in one shard."""
    jobs = [job(number, resource=resource, lanes=lanes or {}) for number, (resource, lanes, _, _) in enumerate(drawn)]
    jobs = [
        job(each.number, resource=each.resource, lanes=each.lanes, needs=(each.number - 1,) if each.number % 2 else ())
        for each in jobs
    ]
    made = cut(jobs, shard_items)
    before = {shard.no: set(shard.after) for shard in made.shards}
    for shard in made.shards:
        for after in shard.after:
            before[shard.no] |= before[after]
    for earlier in jobs:
        for later in jobs[earlier.number + 1 :]:
            if later.resource != earlier.resource:
                continue
            for rank in set(earlier.lanes or {}) & set(later.lanes or {}):
                (first,) = [shard for shard in made.shards if holds(shard, made, earlier, rank)]
                (second,) = [shard for shard in made.shards if holds(shard, made, later, rank)]
                assert first is second or first.no in before[second.no] or earlier.number in second.needs


def test_a_hot_lane_is_alone():
    """A lane above a fair share has a shard of its own; the others are even."""
    made = cut([job(0, lanes={rank: 1_000 if rank == 0 else 10 for rank in range(101)})], 100)
    hot, *others = sorted(made.shards, key=lambda shard: -shard.items)
    assert (hot.kind, hot.first, hot.items) == (Kind.LANE, 0, 1_000)
    assert {shard.items for shard in others} == {100}
    assert all(not has_rank(shard, 0) for shard in others)


def test_copies_come_last_and_are_in_no_range():
    """Items that get the answer of an equal one are a shard behind those of their job."""
    made = cut([job(0, items=10, copies=(2, 3, 9))], 5)
    assert [(shard.kind, shard.items, shard.after) for shard in made.shards] == [
        (Kind.RANGE, 3, ()),
        (Kind.RANGE, 4, ()),
        (Kind.COPIES, 3, (0, 1)),
    ]


def test_what_is_still_to_be_made_is_one_shard_between_all_others():
    """Its lanes may be anybody's: where it writes, no shard of its resource is worked on beside it, before or after."""
    lanes = dict.fromkeys(range(1, 11), 10)
    given = [
        job(0, lanes=lanes),
        job(1, lanes={}, needs=(0,), is_made=True),
        job(2, lanes={}, needs=(0,), is_made=True),
        job(3, lanes=lanes),
        job(4, needs=(1,), is_made=True),
        job(5, resource="org", lanes=lanes),
    ]
    made = cut(given, 50)
    of_job = {number: [shard for shard in made.shards if shard.job_group == made.groups[number]] for number in range(6)}
    assert [len(of_job[number]) for number in range(6)] == [4, 1, 1, 4, 1, 2]
    (first,), (second,), (read,) = of_job[1], of_job[2], of_job[4]
    assert (first.kind, first.items, first.needs) == (Kind.MAKE, UNKNOWN_ITEMS, (0,))
    assert first.after == tuple(shard.no for shard in of_job[0])
    assert second.after == (first.no,)
    assert {shard.after for shard in of_job[3]} == {(second.no,)}
    assert (read.kind, read.after, read.needs) == (Kind.MAKE, (), (1,))
    assert {shard.after for shard in of_job[5]} == {()}


@given(st.lists(st.lists(st.integers(NO_LANE, 12), min_size=1, max_size=30), min_size=1, max_size=4), st.integers(1, 9))
def test_a_shard_has_items_of_one_wave(drawn, shard_items):
    """Each wave's items are in shards of that wave; what shares a lane keeps the order of waves and of jobs, and a job
    is alone in its group.
    """
    jobs = []
    for number, ranks in enumerate(drawn):
        ends = sorted({len(ranks), *range(number + 1, len(ranks), 7)})
        waves = [Counter(ranks[first:end]) for first, end in pairwise([0, *ends])]
        jobs.append(job(number, lanes=Counter(ranks), ends=ends, lanes_of=waves))
    jobs.append(job(len(jobs), items=20, ends=[1, 4, 20]))
    made = cut(jobs, shard_items)
    before = {
        shard.no: set(shard.after).union(*(before_of(made, after) for after in shard.after)) for shard in made.shards
    }
    for each in jobs:
        mine = [shard for shard in made.shards if shard.job_group == made.groups[each.number]]
        sizes = Counter[int]()
        for shard in mine:
            sizes[shard.wave] += shard.items
        assert list(sizes.values()) == [end - first for first, end in each.waves]
        for shard in mine:
            assert shard.kind is not Kind.RANGE or [first <= shard.first < shard.behind <= end
                for first, end in each.waves][shard.wave - 1]  # fmt: skip
    for earlier, later in combinations(made.shards, 2):
        meet = any(has_rank(earlier, rank) and has_rank(later, rank) for rank in range(13))
        assert Kind.RANGE in (earlier.kind, later.kind) or not meet or earlier.no in before[later.no]


def before_of(made: Cut, no: int) -> set[int]:
    """Shards that are done before that one can be claimed."""
    return set(made.shards[no].after).union(*(before_of(made, after) for after in made.shards[no].after))


def test_a_million_items_are_hundreds_of_shards():
    """About 2,000 items a shard, and never more than 4,096 shards of a group."""
    assert len(cut([job(0, items=1_000_000)]).shards) == 500
    assert len(cut([job(0, items=100_000_000)]).shards) == 4_096
    assert cut([job(0, items=0), job(1, lanes={})]).shards == []


def test_a_worker_knows_what_is_in_its_shards():
    """Spans and listed items are found by their shard, until it is let go; what is not held is in none."""
    holding = Holding()
    holding.hold(3, 7, [Span(0, 10, 20)])
    holding.hold(5, 1, items=[(1, 4), (1, 9), (2, 0)])
    assert holding.shards() == [3, 5]
    assert [holding.epoch_of(shard) for shard in (3, 4, 5)] == [7, -1, 1]
    places = {(0, 9): -1, (0, 10): 3, (0, 19): 3, (0, 20): -1, (1, 4): 5, (1, 5): -1, (2, 0): 5}
    assert {key: holding.shard_of(*key) for key in places} == places
    assert (holding.items_of(1), holding.items_of(1, [3]), list(holding.spans_of(0, [5]))) == ([4, 9], [], [])
    assert list(holding.spans_of(0)) == [Span(0, 10, 20)]
    holding.hold(3, 8, [Span(0, 10, 12)])
    assert (holding.epoch_of(3), holding.shard_of(0, 15)) == (8, -1)
    holding.let_go(5)
    holding.let_go(5)
    assert (holding.shards(), holding.shard_of(1, 4), holding.shard_of(0, 11)) == ([3], -1, 3)
