"""The output of `bulk check --json`: the result of a check, as data."""

import msgspec

from bulk.bundle.checked import Checked


class CheckedJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job of a manifest whose every item can be used.

    Attributes:
        lanes: lanes that begin in the job (count); 0 for reads.
        longest_lane: name of the longest of these lanes; None: no lanes. longest_lane_items: items in it (count).
        least_requests: requests of all items if everything is already as asked (count).
        most_requests: requests of all items if everything is sent and no answer is lost (count).
    """

    job: str
    operation: str
    items: int
    lanes: int
    longest_lane: str | None
    longest_lane_items: int
    least_requests: int
    most_requests: int


class CheckData(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check.

    Attributes:
        notes: sentences that the user should read and that stop nothing.
    """

    name: str
    jobs: tuple[CheckedJob, ...]
    notes: tuple[str, ...]


def of_checked(checked: Checked) -> CheckData:
    """Return the counts of a check."""
    jobs = tuple(
        CheckedJob(
            job=job.name,
            operation=job.operation.name,
            items=found.items,
            lanes=found.lanes,
            longest_lane=found.longest_lane[0] if found.longest_lane else None,
            longest_lane_items=found.longest_lane[1] if found.longest_lane else 0,
            least_requests=found.least_requests,
            most_requests=found.most_requests,
        )
        for job, found in zip(checked.manifest.jobs, checked.jobs, strict=True)
    )
    return CheckData(name=checked.manifest.name, jobs=jobs, notes=checked.notes)
