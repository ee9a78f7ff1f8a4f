"""The scheduler of needs by key against a naive model, which looks at every item each time."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bulk.bundle.links import edges_of
from bulk.manifest.manifest import Job, KeyedNeed
from tests.schedule.test_keyed_scheduler import BROKEN, DONE, Made
from tests.schedule.test_scheduler import Read, Write


class Model:
    """The same, naively: each time it looks at everything."""

    def __init__(self, jobs: Sequence[Job], counts: Sequence[int], needed: Any, waiting: Any, lanes: Any) -> None:
        self.jobs, self.counts, self.lanes = jobs, counts, lanes
        self.edges = list(zip(edges_of(jobs), needed, waiting, strict=True))
        self.ended: dict[tuple[int, int], bool] = {}
        self.flying: set[tuple[int, int]] = set()

    def standing(self, job: int, index: int) -> str:
        """`open`, `doomed`, or `waits`."""
        is_waiting = False
        for edge, its, mine in self.edges:
            if edge.waiting != job:
                continue
            for other, key in enumerate(its):
                if key == mine[index]:
                    end = self.ended.get((edge.needed, other))
                    if end is False and self.jobs[job].needs_policy == "all":
                        return "doomed"
                    is_waiting = is_waiting or end is None
        return "waits" if is_waiting else "open"

    def may_begin(self) -> set[tuple[int, int]]:
        """Items that are open, with nothing before them in their lane."""
        items = [(job, index) for job, count in enumerate(self.counts) for index in range(count)]
        found = set()
        held = {self.lanes.get(item) for item in self.flying} - {None}
        for item in items:
            if item in self.ended or item in self.flying:
                continue
            lane = self.lanes.get(item)
            if lane is None or lane not in held:
                if self.standing(*item) == "open":
                    found.add(item)
                held.add(lane)
        return found

    def doomed(self) -> set[tuple[int, int]]:
        """All that is to be skipped, in turn."""
        found: set[tuple[int, int]] = set()
        while True:
            new = {
                (job, index)
                for job, count in enumerate(self.counts)
                for index in range(count)
                if (job, index) not in self.ended and self.standing(job, index) == "doomed"
            }
            if not new:
                return found
            found |= new
            self.ended |= dict.fromkeys(new, False)


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[Job], list[int], list[list[int]], list[list[int]], list[tuple[int, int, int]]]:
    """Jobs that need earlier ones by few keys, some with lanes that they share."""
    counts = draw(st.lists(st.integers(0, 7), min_size=2, max_size=4))
    jobs, needed, waiting, rows = list[Job](), [], [], []
    laned = draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts)))
    for number, count in enumerate(counts):
        others = draw(st.lists(st.integers(0, number - 1), unique=True, max_size=2)) if number else []
        need = tuple(KeyedNeed(f"j{other}", (("key", "key"),)) for other in others)
        policy = draw(st.sampled_from(["all", "all", "any-outcome"]))
        operation = Write() if laned[number] else Read()
        names = tuple(each.job for each in need)
        jobs.append(Job(number, f"j{number}", operation, needs=names, by_key=need, needs_policy=policy))
        for other in others:
            needed.append(draw(st.lists(st.integers(0, 3), min_size=counts[other], max_size=counts[other])))
            waiting.append(draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)))
        if laned[number]:
            lanes = draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
            rows += [(number, index, lane) for index, lane in enumerate(lanes)]
    return jobs, counts, needed, waiting, rows


@settings(max_examples=300, deadline=None)
@given(runs(), st.data())
def test_it_offers_what_the_naive_model_offers(run: Any, data: st.DataObject) -> None:
    """At every moment exactly what looking at all items gives is offered, skipped and left, also after a restart
    (failures.md row 90)."""
    jobs, counts, needed, waiting, rows = run
    lanes = {(job, index): lane for job, index, lane in rows}
    model = Model(jobs, counts, needed, waiting, lanes)
    made = Made(jobs, (needed, waiting), counts, rows=rows, window=data.draw(st.integers(1, 3)))
    flying: dict[tuple[int, int], Any] = {}

    def taken() -> dict[tuple[int, int], Any]:
        return {(work.entry.job, work.entry.index): work for work in made.taken()}

    def restart() -> None:
        nonlocal made
        bad: dict[int, list[int]] = {}
        for (job, index), is_good in model.ended.items():
            if not is_good:
                bad.setdefault(job, []).append(index)
        made = Made(jobs, (needed, waiting), counts, rows=rows, before=(made.progress, bad))
        for each in made.progress:
            each.in_flight = 0
        flying.clear()
        model.flying.clear()

    kills = 3
    while True:
        begun = taken() if data.draw(st.booleans()) else {}  # some before what is doomed is skipped
        assert set(made.skip()) == model.doomed()
        begun |= taken()
        if not made.one.is_stopped:
            assert set(begun) == model.may_begin()
        flying |= begun
        model.flying |= set(begun)
        if not flying:
            break
        item = data.draw(st.sampled_from(sorted(flying)))
        if kills and data.draw(st.integers(0, 9)) == 0:  # killed: what was in flight is begun anew
            kills -= 1
            restart()
            continue
        is_good = data.draw(st.integers(0, 4)) > 0
        made.one.ended(flying.pop(item), DONE if is_good else BROKEN, 1)
        model.flying.discard(item)
        model.ended[item] = is_good
        if kills and data.draw(st.integers(0, 9)) == 0:  # killed before what is doomed was skipped
            kills -= 1
            restart()
    assert not flying
    assert made.one.is_complete
    assert len(model.ended) == sum(counts)
