"""The items of each job as they are offered: those of its source, or those that were made while the run goes on.

Also which of them are copies: reads that ask for the same as an earlier one.
"""

from pathlib import Path

from bulk.bundle.checked import Checked, is_spooled
from bulk.bundle.duplicate_reads import Copies
from bulk.bundle.streams import EntryStream, LaneIndex
from bulk.check.derived_items import DerivedStream
from bulk.schedule.queues import Stream


class JobStreams:
    """Opens the items of each job as a stream, and knows the lanes of all of them.

    Attributes:
        checked: the checked manifest. workspace: the folder in which the check has put its files.
        index: the lanes of the items that the manifest names.
        copies: the duplicate reads of each job, in running order.
    """

    def __init__(self, checked: Checked, workspace: Path) -> None:
        self.checked, self.workspace = checked, workspace
        self._has_several = any(job.derivation is not None for job in checked.manifest.jobs)
        self.index = LaneIndex(checked, workspace)
        self._made: dict[int, LaneIndex] = {}
        all_copies = Copies(workspace)
        self.copies = [all_copies for _ in checked.manifest.jobs]

    def stream(self, number: int) -> Stream:
        """Return the items of a job, in order."""
        if number in self._made:
            return DerivedStream(self._made[number])
        return EntryStream(self.checked, number, self.workspace)

    def offered(self, number: int) -> Stream | None:
        """Return the items of a job, in order; None where the index says which item is next, because items may have to
        wait for others, or lie in a spool."""
        job = self.checked.manifest.jobs[number]
        is_laned = self._has_several or self.checked.jobs[number].is_laned or is_spooled(job)
        return None if is_laned and not job.operation.is_read else self.stream(number)

    def made(self, number: int, index: LaneIndex, copies: Copies) -> None:
        """Note that the items of a job were made: `index` has them, and `copies` says which are duplicate reads."""
        self._made[number], self.copies[number] = index, copies

    def close(self) -> None:
        """Close the files that are open."""
        for copies in self.copies:
            copies.close()
        for index in (self.index, *self._made.values()):
            index.close()
