"""Sentences about a checked manifest that stop nothing: what is asked for twice, and what need not be sent."""

from collections.abc import Iterator, Mapping, Sequence

from bulk.manifest.index import Repeats
from bulk.manifest.manifest import Job


def on_repeats(jobs: Sequence[Job], repeats: Mapping[int, Repeats]) -> Iterator[str]:
    """Writes that an earlier item asks for in the same words, by the number of their job."""
    for number, (count, earlier, later) in sorted(repeats.items()):
        names = [jobs[job].name for job, _ in (earlier, later)]
        many = "1 item asks" if count == 1 else f"{count:,} items ask"
        where = "" if names[0] == names[1] else f" of {names[0]}"
        yield (
            f"job {jobs[number].name}: {many} for the same as an earlier one "
            f"(first: item {later[1]:,} as item {earlier[1]:,}{where}, counted from 0)"
        )


def on_superseded(jobs: Sequence[Job], superseded: Mapping[int, int]) -> Iterator[str]:
    """What is saved because only the last item of a lane is sent: items by the number of their job (count)."""
    for number, count in sorted(superseded.items()):
        many = "1 item is" if count == 1 else f"{count:,} items are"
        yield (
            f"job {jobs[number].name}: {many} superseded by a later one and not sent, "
            f"which saves {count * jobs[number].operation.least_requests:,} of its requests"
        )
