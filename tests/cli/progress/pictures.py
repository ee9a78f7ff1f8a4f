"""A run that is busy, as displays are given it."""

from bulk.status import Wait
from tests.report.ledgers import START, bucket, job_status, status

HOSTILE = "[red]x[/]\x1b]0;t\x07\u202e\nevil"


def busy(jobs: int = 3, waits: int = 2, **fields):
    """A run with `jobs` jobs and `waits` waits."""
    return status(
        START + 60,
        jobs=tuple(
            job_status(f"job-{number}", in_flight=4, outcomes={"succeeded": 40, "failed": 2}) for number in range(jobs)
        ),
        buckets=(
            bucket(reset_at=START + 600),
            bucket("scim", remaining=0, closed_because="used up", opens_at=START + 70),
        ),
        waits=tuple(Wait(f"lane acme/r{number} 2 ahead", None, number + 1) for number in range(waits)),
        **({"requests": 99, "per_second": 8.3, "concurrency": 64, "in_flight": 61, "finish_at": START + 900} | fields),
    )
