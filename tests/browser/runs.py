"""Reports of runs that were made for the browser: a small one, one with hostile names, and a large one."""

import random
from collections.abc import Iterator
from pathlib import Path

from bulk.ledger.records import Finished, Minute
from bulk.report.exploration import explore
from bulk.report.fold import fold
from bulk.report.report_files import HTML_NAME, write_reports
from bulk.report.timeline import Timeline
from bulk.status import RunStatus, Wait, WaitKind
from tests.report.ledgers import START, Run, bucket, finished, job_status, status

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[31m\x07\"'><a href=javascript:x>"

FAILED = 52
"""Items of the small report that did not succeed."""
MANY = 100_000

_CAUSES = (
    ("not_found", "Not Found", 404),
    ("forbidden", "Resource not accessible by integration", 403),
    ("validation_failed", "path {} is too long: 4096 characters", 422),
    ("server_error", "502 Bad Gateway", 502),
)


def write_small(folder: Path) -> Path:
    """Two jobs with several causes, and two minutes of figures in which a budget was reset."""
    run = Run(folder, readmes=100, codeowners=60)
    items = [finished(index) for index in range(40, 100)]
    items += [finished(index, "failed", id=f"my-{index}" if index == 5 else None) for index in range(30)]
    items += [finished(index, "failed", code="forbidden", message=f"r{index} is closed") for index in range(30, 40)]
    items += [finished(index, "failed", "codeowners", code="conflict", http_status=409) for index in range(10)]
    items += [finished(10, "unknown", "codeowners", code="unknown_outcome", request_id="F00D")]
    items += [finished(11, "skipped", "codeowners", code="dependency_failed", message="readmes")]
    return _written(run, items)


def write_hostile(folder: Path) -> Path:
    """Every name and message is hostile."""
    run = Run(folder)
    run.jobs = {HOSTILE: 3}
    item = {"owner": HOSTILE, "repo": HOSTILE, "path": HOSTILE, HOSTILE: HOSTILE}
    items = [
        finished(index, "failed", HOSTILE, item=item, id=HOSTILE, request_id=HOSTILE, code="rejected", message=HOSTILE)
        for index in range(2)
    ]
    return _written(run, items)


def write_large(folder: Path) -> Path:
    """A hundred thousand failures, of names as they are."""
    return _written(Run(folder, readmes=MANY), _many())


def _many() -> Iterator[Finished]:
    dice = random.Random(5)
    for index in range(MANY):
        code, message, http_status = _CAUSES[min(3, int(dice.expovariate(1)))]
        repo = f"service-{dice.randrange(10**6):06d}-{dice.choice(('api', 'web', 'batch', 'infra'))}"
        yield finished(
            index,
            "failed",
            code=code,
            message=message.format(repo),
            item={"owner": f"team-{index % 40}", "repo": repo, "path": "README.md"},
            http_status=http_status,
            started_at=START + index * 100 / MANY,
            request_id=f"{dice.getrandbits(64):016X}",
        )


def _written(run: Run, items: list[Finished] | Iterator[Finished]) -> Path:
    last, minutes = status(START + 110), list(_minutes(list(run.jobs)))
    with run.open() as ledger:
        group = []
        for each in items:
            group.append(run.record(each))
            if len(group) == 1000:
                ledger.commit(group)
                group = []
        ledger.commit(group, last)
        for minute in minutes:
            ledger.commit([], last, {}, minute)
        ledger.finish(1, "", last)
    report = fold(run.view, notes=("Every item was refused: most likely its credential lacks a scope.",))
    write_reports(report, run.run_dir, explore(run.view, report))
    return run.run_dir / HTML_NAME


def _minutes(jobs: list[str]) -> Iterator[Minute]:
    """Figures of 110 seconds; a minute comes again with each of its samples."""
    timeline, dice, latencies = Timeline(START), random.Random(7), [0] * 12
    for second in range(110):
        latencies = [seen + dice.randrange(1 + 3 * place) for place, seen in enumerate(latencies)]
        minute = timeline.note(_at(second, jobs), latencies)
        assert minute is not None
        yield minute


def _at(second: int, jobs: list[str]) -> RunStatus:
    reset_at = START + (60 if second < 60 else 120)
    return status(
        START + second,
        jobs=tuple(job_status(job, outcomes={"succeeded": second}) for job in jobs),
        buckets=(bucket(remaining=5000 - 80 * (second % 60), used=80 * second, reset_at=reset_at),),
        waits=(
            Wait("pace", None, 5 + second % 9, WaitKind.PACE),
            Wait("bucket", None, second % 60 // 50 * 30, WaitKind.BUDGET),
        ),
        concurrency=min(64, 16 + second),
        in_flight=second % 16,
    )
