"""Waves of jobs of which single items wait for others, in random orders, with kills at any moment."""

import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from bulk.engine.agreement.gates import cut, hold_back
from bulk.manifest.manifest import Job
from bulk.manifest.needs.wave_ends import inheriting
from bulk.quantities import Share
from bulk.schedule.job_progress import JobProgress
from bulk.schedule.waves import wave_numbers
from tests.schedule.test_inherited_waves import a_job
from tests.schedule.test_keyed_scheduler import DONE, Made, linked

JOBS = (a_job(0), a_job(1, by_key=("0",)), a_job(2, by_key=("0", "1"), is_read=True), a_job(3, by_key=("2",)))
"""One that is cut, and three that go in its waves, one of them reads; none shares a lane."""

SIZES = st.lists(st.integers(1, 4).map(lambda count: Share(count=count)), min_size=1, max_size=4)


class Killed(Exception):
    """The process has ended without a word."""


class Runs:
    """Processes that work on the same items one after the other."""

    def __init__(
        self, roots: int, waiting: Sequence[Sequence[int]], sizes: Sequence[Share], dice: random.Random
    ) -> None:
        self.jobs: Sequence[Job] = JOBS
        own = list(range(roots))
        hooks, reads, rules = ([key % roots for key in keys] for keys in waiting)
        # an item that waits for the job before needs one of its keys there
        reads = [hooks[key % len(hooks)] for key in reads]
        rules = [reads[key % len(reads)] for key in rules]
        self.keys = ([own, own, hooks, reads], [hooks, reads, reads, rules])
        self.counts = [len(each) for each in (own, hooks, reads, rules)]
        self.sizes, self.dice = tuple(sizes), dice
        self.progress = [JobProgress(count, bytearray(count // 8 + 1)) for count in self.counts]
        links, inherit = linked(self.jobs, self.keys), inheriting(self.jobs)
        cut(self.jobs, self.sizes, self.progress)
        waves = self.progress[0].waves
        assert waves is not None
        ends = waves.ends(roots)
        self.inherited = wave_numbers(links, inherit, {0: ends}, dict(enumerate(self.counts)))
        self.waves = {(job, index): wave for job, all_of in self.inherited.items() for index, wave in enumerate(all_of)}
        self.waves |= {(0, index): 1 + sum(1 for end in ends if end <= index) for index in own}
        self.ended = set[tuple[int, int]]()

    def process(self) -> None:
        """One from its start to its end, or until it is killed."""
        self.progress = [JobProgress(count, bytearray(count // 8 + 1)) for count in self.counts]
        for job, index in self.ended:
            self.progress[job].end(index, DONE.kind)
        is_first = True
        while len(self.ended) < sum(self.counts):
            cut(self.jobs, self.sizes, self.progress)
            if is_first:
                hold_back(self.jobs, self.progress, self.inherited)
                is_first = False
            self.until_dry(Made(self.jobs, self.keys, self.counts, before=(self.progress, {}), window=2))

    def until_dry(self, made: Made) -> None:
        """A run of what is offered now."""
        flying = made.taken()
        while flying:
            for work in flying:
                item = work.entry.job, work.entry.index
                earlier = [each for each, wave in self.waves.items() if wave < self.waves[item]]
                assert self.ended.issuperset(earlier), f"{item} of wave {self.waves[item]} before {earlier}"
            if self.dice.random() < 0.1:
                raise Killed
            work = flying.pop(self.dice.randrange(len(flying)))
            assert (work.entry.job, work.entry.index) not in self.ended
            made.one.ended(work, DONE, 1)
            self.ended.add((work.entry.job, work.entry.index))
            flying += made.taken()


@settings(max_examples=500, deadline=None)
@given(
    roots=st.integers(1, 8),
    waiting=st.tuples(*[st.lists(st.integers(0, 7), min_size=1, max_size=8) for _ in range(3)]),
    sizes=SIZES,
    seed=st.integers(0, 2**32),
)
def test_no_item_of_a_later_wave(
    roots: int, waiting: Sequence[Sequence[int]], sizes: Sequence[Share], seed: int
) -> None:
    """Whatever ends first, and wherever it is killed: nothing of a wave is offered before all of the wave before has
    ended, and in the end everything has, once."""
    runs = Runs(roots, waiting, sizes, random.Random(seed))
    while len(runs.ended) < sum(runs.counts):
        try:
            runs.process()
        except Killed:
            continue
