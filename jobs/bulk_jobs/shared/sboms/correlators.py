"""Offline checks of a correlator: it must be the same in each run of a job, and must not be that of another job.

The platform keeps the newest snapshot of each correlator and detector. A correlator that changes with each run leaves
the old snapshots in place for ever; if two jobs share one, each job's snapshot replaces that of the other.
"""

import re

OVERWRITTEN = (
    "has the same repository, commit, correlator and detector as {other} and another source, and would take its place: "
    "give each its own job.correlator, such as the name of the matrix job in it"
)

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_DATE = re.compile(r"(?<![0-9])20[0-9]{2}([-/._ ]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12][0-9]|3[01])(?![0-9])")
_EPOCH = re.compile(r"(?<![0-9])1[5-9][0-9]{8}(?:[0-9]{3})?(?![0-9])")
_LEAST_SHA = 7
_LEAST_ID = 4


def flaw_of(correlator: str, job_id: str, sha: str) -> str:
    """Return why a correlator would be a different one in the next run; empty where no sign of that is found."""
    folded = correlator.casefold()
    if _is_of_a_run(job_id) and re.search(f"(?<![0-9]){re.escape(job_id.casefold())}(?![0-9])", folded):
        found = "the job's id"
    elif len(sha) >= _LEAST_SHA and sha[:_LEAST_SHA].casefold() in folded:
        found = "the commit"
    elif _UUID.search(correlator):
        found = "a UUID"
    elif _DATE.search(correlator) or _EPOCH.search(correlator):
        found = "a time"
    else:
        return ""
    return f"holds {found}, which is another one in the next run: what this one finds would never be taken away"


def _is_of_a_run(job_id: str) -> bool:
    return len(job_id) >= _LEAST_ID and any(letter.isdigit() for letter in job_id)
