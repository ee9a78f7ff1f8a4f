"""The Report says what the ledger and the result lines say, in bounded memory."""

import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.errors import RunDirectoryError
from bulk.exit_codes import of_run
from bulk.ledger.results import encode
from bulk.model import OutcomeKind
from bulk.report import active_time, tally
from bulk.report.active_time import ActiveTime
from bulk.report.fold import fold
from bulk.report.record import OUTCOMES, Report
from bulk.report.report_files import as_json
from bulk.report.tally import Tally
from bulk.report.tally_rows import read_line
from bulk.status import Wait
from tests.report.ledgers import START, bucket, finished, job_status


def test_a_complete_run_is_a_success(new_run):
    """Where every item succeeded or was unchanged, the exit code is 0 and nothing is left to do."""
    view = new_run(readmes=3).epoch([finished(0), finished(1, "unchanged", http_status=304), finished(2)], requests=3)
    report = fold(view)
    assert (report.state, report.exit_code, report.next_command) == ("complete", 0, "")
    assert (report.items, report.done, report.left, report.requests, report.not_modified) == (3, 3, 0, 3, 1)
    assert report.outcomes == {"succeeded": 2, "unchanged": 1, "failed": 0, "skipped": 0, "unknown": 0}
    assert report.meaning == "every item succeeded or was unchanged"


@pytest.mark.parametrize(
    ("outcomes", "superseded", "is_complete", "stopped_with", "expected"),
    [
        ({"succeeded": 5}, 0, True, None, 0),
        ({"failed": 1}, 0, True, None, 1),
        ({"skipped": 1}, 0, True, None, 1),
        ({"skipped": 2}, 2, True, None, 0),
        ({"skipped": 3}, 2, True, None, 1),
        ({"unknown": 1, "failed": 1}, 0, True, None, 6),
        ({"unknown": 1, "failed": 1}, 0, False, 3, 3),
        ({"unknown": 1, "failed": 1}, 0, False, 4, 4),
        ({"succeeded": 1}, 0, False, 130, 130),
        ({"succeeded": 1}, 0, False, 143, 143),
        ({"succeeded": 1}, 0, False, None, 3),
        ({"succeeded": 5}, 0, True, 3, 0),
    ],
)
def test_exit_codes(outcomes, superseded, is_complete, stopped_with, expected):
    """When several hold, the first of 4, 3, 6, 1 is given; superseded items never count against it."""
    assert of_run(outcomes, superseded, is_complete=is_complete, stopped_with=stopped_with) == expected


@pytest.mark.parametrize(
    ("code", "why"), [(3, "the platform is out of reach"), (4, "401"), (130, "interrupted by SIGINT")]
)
def test_a_stopped_run_tells_how_to_go_on(new_run, code, why):
    """With work left, the exit code is that of the stop, and the command that resumes is there, quoted for a shell."""
    run = new_run(readmes=3)
    view = run.epoch([finished(0)], exit_code=code, why=why, waits=(Wait("bucket core", START + 60, 2),))
    report = fold(view)
    assert (report.state, report.exit_code, report.why, report.left) == ("stopped", code, why, 2)
    assert report.next_command == f"bulk resume {run.run_dir}"
    assert [(wait.what, wait.count) for wait in report.waits] == [("bucket core", 2)]


def test_what_failed_is_retried(new_run):
    """A complete run with failures names the retry, and the errors with count, meaning and one example each."""
    items = [
        finished(0, "failed", code="not_found", id="mine"),
        finished(1, "failed", code="not_found"),
        finished(2, "unknown", code="unknown_outcome", message="lost"),
    ]
    run = new_run(readmes=3)
    report = fold(run.epoch(items, exit_code=6))
    assert (report.exit_code, report.next_command) == (6, f"bulk retry {run.run_dir}")
    (job,) = report.jobs
    assert [(error.code, error.count) for error in job.errors] == [("not_found", 2), ("unknown_outcome", 1)]
    assert all(error.hint and error.example for error in job.errors)
    example = job.errors[0].example
    assert example is not None
    assert (example.index, example.id, example.label, example.message) == (0, "mine", "acme/r0", "Not Found")


def test_superseded_items_are_no_problem(new_run):
    """An item that a later one supersedes is counted and noted, and neither listed as a problem nor to be retried."""
    view = new_run(readmes=2).epoch([finished(0), finished(1, "skipped", code="superseded")])
    report = fold(view)
    assert (report.exit_code, report.next_command, report.superseded) == (0, "", 1)
    assert report.jobs[0].problems == ()
    assert any("later one" in note for note in report.notes)


def test_a_killed_run_is_lost(new_run):
    """A run whose process ended unexpectedly is lost, not running, and can be resumed."""
    view = new_run(readmes=3).epoch([finished(0)], exit_code=None, requests=7)
    report = fold(view, now=START + 500)
    assert (report.state, report.exit_code) == ("lost", 3)
    assert (report.active_s, report.requests) == (10.0, 7)
    assert report.next_command.startswith("bulk resume")
    assert any("ended unexpectedly" in note for note in report.notes)


def test_a_process_that_was_killed_holds_nothing(new_run):
    """A run directory that still names its killed process is not taken for one that runs."""
    run = new_run(readmes=3)
    code = (
        "import os, signal, sys, pathlib\n"
        "from tests.report.ledgers import Run, START\n"
        "ledger = Run(pathlib.Path(sys.argv[1]), readmes=3).open()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code, str(run.run_dir)], cwd=root, check=False)
    assert done.returncode == -signal.SIGKILL
    assert run.view.holder() is not None
    assert fold(run.view, now=START + 1).state == "lost"


def test_items_of_other_jobs_results_are_known_late(new_run):
    """How many items a job has that are made from another job's results, only the running process can say."""
    view = new_run(hooks=0).epoch([finished(0, job="hooks")], exit_code=3, jobs=(job_status("hooks", items=7),))
    report = fold(view)
    assert (report.items, report.left, report.exit_code) == (7, 6, 3)


def test_a_run_in_another_process_is_running(new_run):
    """While its process lives, a run is running, however little it has done."""
    run = new_run(readmes=3)
    with run.open() as ledger:
        ledger.commit([run.record(finished(0))])
        report = fold(run.view, now=START + 30)
        assert (report.state, report.active_s) == ("running", 30.0)
        assert report.next_command.startswith("bulk watch")


def test_epochs_add_up(new_run):
    """Requests, repeats, settled answers and budgets are those of all epochs; a pause is not active time."""
    run = new_run(readmes=2)
    run.epoch([finished(0)], exit_code=130, requests=10, retries=2, settled=1, buckets=(bucket(used=9),))
    later = START + 100_000
    view = run.epoch(
        [finished(1, started_at=later + 1)],
        started_at=later,
        lasts_s=20.0,
        requests=5,
        buckets=(bucket(used=4, remaining=77), bucket("scim", used=1)),
    )
    report = fold(view)
    assert (report.requests, report.retries, report.settled) == (15, 2, 1)
    assert [(each.category, each.used, each.remaining) for each in report.buckets] == [
        ("core", 13, 77),
        ("scim", 1, 2000),
    ]
    assert (report.active_s, report.wall_s) == (30.0, 100_020.0)
    assert [epoch.exit_code for epoch in report.epochs] == [130, 0]
    assert report.timeline is not None
    assert report.timeline.breaks_s == (10.0,)
    assert sum(map(sum, report.timeline.bins)) == 2


def test_a_start_that_spent_nothing_hides_no_limit(new_run):
    """An installation that had nothing to do after a resume was not asked what is left: what was heard of it counts."""
    run = new_run(readmes=2)
    run.epoch([finished(0)], exit_code=130, requests=1, buckets=(bucket(used=1, remaining=77),))
    nothing = bucket(used=0, limit=None, remaining=None)
    (core,) = fold(run.epoch([finished(1)], started_at=START + 99, buckets=(nothing,))).buckets
    assert (core.used, core.limit, core.remaining) == (1, 5000, 77)


def test_a_retry_replaces(new_run):
    """After a retry, only how an item ended last is reported."""
    run = new_run(readmes=2)
    run.epoch([finished(0), finished(1, "failed")], exit_code=1)
    with run.open(START + 60) as ledger:
        assert ledger.reopen({OutcomeKind.FAILED}) == 1
    report = fold(run.epoch([finished(1)], started_at=START + 70))
    assert (report.exit_code, report.outcomes["failed"], report.jobs[0].problems) == (0, 0, ())


def test_the_limit_of_an_earlier_start_is_forgotten(new_run):
    """A run cut by --limit is complete for those items; resumed without it, work is left again."""
    run = new_run(readmes=1)
    assert fold(run.epoch([finished(0)], jobs=(job_status(items=1),))).exit_code == 0
    run.jobs["readmes"] = 5
    run.open(START + 60).close()  # killed before it said anything
    report = fold(run.view)
    assert (report.state, report.left) == ("lost", 4)


def test_every_code_has_its_example(new_run):
    """A code that first occurs after hundreds of others still has an example; the list of problems is bounded."""
    items = [finished(index, "failed") for index in range(300)]
    items.append(finished(300, "failed", code="conflict", message="x" * 10_000))
    items += [finished(301, "unknown", code="unknown_outcome")]
    job = fold(new_run(readmes=302).epoch(items)).jobs[0]
    examples = {error.code: error.example for error in job.errors}
    conflict = examples["conflict"]
    assert conflict is not None
    assert (conflict.index, len(conflict.message)) == (300, tally.MOST_MESSAGE)
    assert len(job.problems) == tally.MOST_PROBLEMS


def test_access_problems_are_explained(new_run):
    """Where a whole job was refused for access, a note says what is most likely wrong (failures.md row 79)."""
    items = [finished(index, "failed", code="forbidden") for index in range(30)]
    assert any("scope" in note for note in fold(new_run(readmes=30).epoch(items)).notes)


def test_slowest_and_percentiles(new_run):
    """The slowest items are exact; percentiles are those of what was sent, so that skipped items don't flatter them."""
    items = [finished(index, elapsed_ms=float(index + 1)) for index in range(1000)]
    items += [finished(1000 + index, "skipped", code="dependency_failed", elapsed_ms=0.0) for index in range(500)]
    job = fold(new_run(readmes=1500).epoch(items)).jobs[0]
    assert [slow.elapsed_ms for slow in job.slowest] == [1000.0, 999.0, 998.0, 997.0, 996.0]
    assert job.elapsed is not None
    assert job.elapsed.median_ms == pytest.approx(500, rel=0.04)
    assert job.elapsed.p99_ms == pytest.approx(990, rel=0.04)
    assert job.elapsed.most_ms == 1000.0


def test_report_json_comes_back(new_run):
    """`report.json` is the whole Report; its fields keep their names and its moments are ISO 8601 in UTC."""
    items = [finished(0), finished(1, "failed")]
    report = fold(new_run(readmes=2).epoch(items, exit_code=1, buckets=(bucket(used=2, reset_at=START + 9),)))
    data = as_json(report)
    assert msgspec.json.decode(data, type=Report) == report
    fields = msgspec.json.decode(data)
    assert " ".join(sorted(fields)) == (
        "actions active_s base_url buckets ended_at epochs exit_code head items jobs left meaning name next_command "
        "not_modified notes outcomes per_second requests retries run_dir settled slowest started_at state superseded "
        "timeline vendor version waits wall_s why"
    )
    assert (fields["version"], fields["started_at"]) == (1, "2026-11-21T08:00:00.000Z")
    assert set(fields["outcomes"]) == set(OUTCOMES)


@pytest.mark.parametrize(
    ("old", "new"), [(b'"item":', b'"item"]'), (b"succeeded", b"succeeeed"), (b"acme", b"a\xffme")]
)
def test_a_damaged_line_is_told(new_run, old, new):
    """Flipped bytes in `results.jsonl` end in an error that names the file, not in a wrong report or a traceback."""
    view = new_run(readmes=1).epoch([finished(0, attempts=9)])
    path = view.run_dir / "results.jsonl"
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(RunDirectoryError, match=r"results\.jsonl is damaged"):
        fold(view)


def test_memory_does_not_grow_with_items():
    """Many times the lines need no more memory: nothing is kept of a line but bounded examples."""

    def peak(lines: int) -> int:
        tracemalloc.start()
        try:
            wrong = (finished(index, "failed" if index % 3 else "succeeded") for index in range(lines))
            Tally(["readmes"], ActiveTime([(START, START + lines)])).read(encode(each) for each in wrong)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(10_000) < peak(400) + 100_000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["result", "error", "outcome", "a"]), inner)
    ),
    max_leaves=8,
)


@given(
    item=st.dictionaries(st.sampled_from(["result", "error", "job", "index", "b"]), json_values, max_size=4),
    result=json_values,
    outcome=st.sampled_from(OUTCOMES),
    own=st.none() | st.text(max_size=20),
)
def test_reading_the_head_is_reading_the_line(item, result, outcome, own):
    """What is read of a line without decoding its result is the same as what decoding all of it gives."""
    line = encode(finished(7, outcome, item=item, result=result, id=own))
    whole = msgspec.json.decode(line)
    read = read_line(line)
    assert (read.job, read.index, read.outcome, read.id) == (whole["job"], 7, outcome, whole["id"])
    assert msgspec.json.decode(read.item) == whole["item"]
    assert (read.error and read.error.code) == (whole["error"] and whole["error"]["code"])
    assert read.elapsed_ms == whole["elapsed_ms"]


@given(
    gaps=st.lists(st.tuples(st.floats(-50, 1e6), st.floats(0, 1e5)), min_size=1, max_size=8),
    ats=st.lists(st.floats(0, 1e7), min_size=2, max_size=20),
)
def test_active_time_never_runs_backwards(gaps, ats):
    """Whatever the epochs and jumps of the clock, a later moment is not earlier in active time, nor beyond its end."""
    spans, at = [], 1000.0
    for gap, length in gaps:
        at += gap
        spans.append((at, at + length))
        at += length
    time = ActiveTime(spans)
    assert time.total_s <= max(end for _, end in spans) - min(start for start, _ in spans) + 1e-6
    mapped = [time.of(each) for each in sorted(ats)]
    assert mapped == sorted(mapped)
    assert all(0.0 <= each <= time.total_s + 1e-6 for each in mapped)


@given(total_s=st.floats(0, 1e8))
def test_the_timeline_is_bounded(total_s):
    """A run of any length has at most 120 bins."""
    timeline = Tally(["readmes"], ActiveTime([(START, START + total_s)])).timeline
    assert 1 <= len(timeline.bins) <= active_time.MOST_BINS
