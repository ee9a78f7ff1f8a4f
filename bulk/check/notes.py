"""Sentences about a checked manifest that stop nothing: writes that are asked for twice."""

from collections.abc import Iterator, Mapping, Sequence

from bulk.bundle.index import Repeats
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
