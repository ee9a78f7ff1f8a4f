"""What a run tallies while it goes is what its lines say, whatever the order, the groups and the resumes."""

import contextlib
import itertools
import math
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Finished, StoredTally
from bulk.ledger.results import encode
from bulk.model import OutcomeKind
from bulk.report.active_time import MOST_BINS, ActiveTime
from bulk.report.fold import fold, tally_of_a_running
from bulk.report.tally import Tally
from tests.report.ledgers import START, Run, finished, status

ENDED = st.builds(
    lambda index, outcome, code, ms, at: finished(
        index, outcome, code=code, elapsed_ms=round(ms, 1), started_at=START + round(at, 3)
    ),
    st.integers(0, 10_000),
    st.sampled_from(["succeeded", "unchanged", "failed", "skipped", "unknown"]),
    st.sampled_from(["not_found", "forbidden", "superseded"]),
    st.floats(0, 1e6),
    st.floats(0, 10_000),
)
TIME = ActiveTime([(START, START + 20_000)])


@given(items=st.lists(ENDED, max_size=80, unique_by=lambda item: item.index), cuts=st.sets(st.integers(0, 80)))
def test_it_is_what_the_lines_say(items: list[Finished], cuts: set[int]) -> None:
    """Items that are added as they end, in groups, by one process after the other, make the tally of their lines."""
    read = Tally(["readmes"], TIME)
    read.read(map(encode, sorted(items, key=lambda item: item.index)))
    stored: dict[int, StoredTally] = {}
    places = sorted({0, len(items), *(cut for cut in cuts if cut < len(items))})
    for start, end in itertools.pairwise(places):
        stored.update(Tally(["readmes"], ActiveTime([(START, math.inf)]), stored).add(items[start:end]))
    added = Tally(["readmes"], TIME, stored)
    ours, theirs = added.jobs["readmes"], read.jobs["readmes"]
    assert (ours.examples, ours.problems, ours.elapsed) == (theirs.examples, theirs.problems, theirs.elapsed)
    assert [slow.elapsed_ms for slow in ours.slowest] == [slow.elapsed_ms for slow in theirs.slowest]
    assert (ours.first_at, ours.last_at, ours.not_modified) == (theirs.first_at, theirs.last_at, theirs.not_modified)
    assert added.timeline == read.timeline


@given(ats=st.lists(st.floats(0, 1e7), max_size=30))
def test_the_timeline_keeps_every_item(ats: list[float]) -> None:
    """However long a run, its timeline has at most 120 bins, and every item is in one."""
    tally = Tally(["readmes"], ActiveTime([(START, START + 1e7 + 1)]))
    tally.add(finished(index, started_at=START + at) for index, at in enumerate(ats))
    assert len(tally.timeline.bins) <= MOST_BINS
    assert sum(map(sum, tally.timeline.bins)) == len(ats)


def kept(run: Run, ledger: Ledger, items: list[Finished], at: float) -> None:
    """Commit items with their tally, as a run does."""
    tally = tally_of_a_running(run.view, at)
    tallies: Mapping[int, StoredTally] = tally.add(items) if tally is not None else {}
    ledger.commit([run.record(each) for each in items], status(at), tallies)


def test_a_report_is_made_without_reading_the_lines(tmp_path: Path) -> None:
    """After a resume the report needs no line of the results, and says the same as with all of them; after a retry,
    and for a run without tallies, it reads them."""
    run = Run(tmp_path / "run", readmes=6)
    with run.open() as ledger:
        kept(run, ledger, [finished(0), finished(1, "failed")], START + 2)
    with run.open(START + 100) as ledger:
        kept(run, ledger, [finished(3), finished(2, started_at=START + 101)], START + 102)
        ledger.finish(3, "stopped", status(START + 110))
    short = fold(run.view, now=START + 200)
    lines = run.run_dir / "results.jsonl"
    text = lines.read_bytes()
    lines.write_bytes(b"x" * len(text))
    assert fold(run.view, now=START + 200) == short
    lines.write_bytes(text)
    with contextlib.closing(sqlite3.connect(run.run_dir / "ledger.db")) as database:
        database.executescript("DROP TABLE tallies")
    assert fold(run.view, now=START + 200) == msgspec.structs.replace(short, timeline=fold(run.view).timeline)
    with run.open(START + 300) as ledger:
        assert tally_of_a_running(run.view, START + 300) is None
        kept(run, ledger, [finished(4)], START + 301)
        assert ledger.reopen({OutcomeKind.FAILED}) == 1
        kept(run, ledger, [finished(1)], START + 302)
        ledger.finish(0, "", status(START + 310))
    report = fold(run.view)
    assert (report.jobs[0].problems, sum(map(sum, report.timeline.bins)) if report.timeline else 0) == ((), 5)


def test_a_retry_forgets_the_tally(tmp_path: Path) -> None:
    """What items added that are to be done again can't be taken away from a tally: it goes, and the lines are read."""
    run = Run(tmp_path / "run", readmes=3)
    with run.open() as ledger:
        kept(run, ledger, [finished(0), finished(1, "failed")], START + 2)
        assert run.view.tallies() is not None
        assert ledger.reopen({OutcomeKind.UNKNOWN}) == 0
        assert run.view.tallies() is not None
        ledger.reopen({OutcomeKind.FAILED})
        assert run.view.tallies() is None
