"""Brings items to their outcomes, for all workers: prepares each before it is sent, and notes what it leaves behind.

`item_run.py` follows one item. This module keeps what the items share: doubts of earlier processes, what this run has
just created and written, and writes that may still arrive. The content of files is put into items in threads: reading
blocks, and a bill of materials of 5 MB takes a tenth of a second to convert, in which the event loop would do nothing
else.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio

from bulk.bundle.item_files import load_files, refuse_changes
from bulk.bundle.secret_fields import SecretPlaces, load_secrets
from bulk.capabilities import ChangesThings, FileError, HoldsSecrets, PlannedOnce, SkipsUnchanged, TakesFiles
from bulk.errors import CredentialRefused
from bulk.execute.item_run import APPLIED_BEFORE, ItemRun
from bulk.execute.preview import look
from bulk.execute.requests.context import ItemTally, RequestContext
from bulk.execute.requests.retry_budget import RetryBudget
from bulk.execute.resume_state import ResumeState
from bulk.execute.shared import Shared
from bulk.execute.write_loop import Again
from bulk.execute.writes.lost_write import LostWrite, lost_write_from
from bulk.execute.writes.overwritten import Overwritten
from bulk.execute.writes.recent_writes import may_create, names_made
from bulk.govern.pools import MemberStuck
from bulk.ledger.records import Intent
from bulk.manifest.manifest import Entry
from bulk.model import Effect, ErrorCode, Outcome, OutcomeKind, failed, succeeded, unchanged, unknown
from bulk.operation import AnyOperation, Item
from bulk.platform.cache.sent_writes import SentWrites
from bulk.redaction import remember
from bulk.storage.disk_threads import Disk, beside

log = logging.getLogger("bulk.execute")

_OF_READS, _OF_WRITES = (OutcomeKind.FAILED,), (OutcomeKind.FAILED, OutcomeKind.UNCHANGED)
"""Outcomes that may hold for a moment only: not every copy of the platform shows at once what was just written."""

AT_ONCE = 2
"""Items whose files are read and converted at once (count): the objects of a large bill take ten times its bytes."""

_WITH_FILES, _COMPLETED = (TakesFiles, SkipsUnchanged), (HoldsSecrets, PlannedOnce)


class ItemRunner:
    """Brings items to their outcome, for all workers.

    Args:
        contents: reads the files that items name.
        secrets: where the secrets of items are.
        began_at: returns when the run was first begun (UTC epoch seconds, platform time), or None while that is not
            known; called when an item is sent.
        sent_writes: the writes that were sent before, for operations that need not repeat them; None: not known.
        resume_state: what earlier processes of the run have left under way.

    Attributes:
        shared: what all items share.
    """

    def __init__(
        self,
        shared: Shared,
        contents: "FileContents",
        resume_state: ResumeState,
        secrets: SecretPlaces,
        began_at: Callable[[], float | None],
        sent_writes: SentWrites | None = None,
    ) -> None:
        self.shared, self._sent_writes = shared, sent_writes
        self._contents = contents
        self._secrets, self._began_at = secrets, began_at
        self._lost_writes: dict[tuple[int, int], LostWrite] = {}
        self._refused_writes: dict[tuple[int, int], LostWrite] = {}
        shared.overwritten.update((key, Overwritten(sent)) for key, sent in resume_state.overwritten.items())
        self.doubt(resume_state.open_intents)

    def doubt(self, open_intents: Mapping[tuple[int, int], Intent]) -> None:
        """Note that an earlier process or worker has sent these writes, and that it is not known how they ended.

        Each of them is settled before its item goes on.
        """
        since, names = self.shared.clock.monotonic(), self.shared.recent_creations.names()
        for key, sent in open_intents.items():
            self._lost_writes[key] = lost_write_from(sent, since, names)

    async def run(self, operation: AnyOperation, entry: Entry, context: RequestContext) -> Outcome:
        """Return the outcome of one item. The context's permit is for its first request, and is used or returned here.

        Raises:
            CredentialRefused, Draining, RunStopped: there is no outcome; an open intent is settled by the next run.
        """
        tally, shared, life = context.tally, self.shared, None
        try:
            item, digest = entry.item, b""
            if isinstance(operation, _WITH_FILES):
                digest = sent_digest(operation, entry)
                if digest and self._was_sent(operation, entry, digest):
                    await self._contents.refuse_changes(operation, entry)
                    return unchanged(None, note="the same was sent before, and taken; nothing was sent")
                item = await self._contents.load(operation, entry)
                self._forget_sent(operation, item)
            if isinstance(operation, _COMPLETED):
                item = self._completed(operation, item)
            if shared.is_preview:
                return await look(shared.sender, operation, item, context)
            lost_write = self._doubt_of(entry, tally) if self._lost_writes else None
            refused = self._refused_writes.pop((entry.job, entry.index), None)
            life = ItemRun(shared, operation, entry, item, context, lost_write, refused)
            outcome = None if lost_write is None else await life.settled_first()
            if outcome is None:
                served = shared.sender.served
                ended = await life.steps()
                looked_into = _OF_READS if operation.is_read else _OF_WRITES
                if (
                    life.doubt is None
                    and isinstance(ended, Outcome)
                    and ended.kind not in looked_into
                    and not ended.is_missing
                ):
                    outcome = ended  # nearly always
                else:
                    outcome = await life.go_on(await _not_misled(life, ended, tally), RetryBudget(served))
            if shared.overwritten:
                outcome = await self._overwriting(operation, entry, item, life, outcome, tally)
            if not operation.is_read:
                self._remember(operation, item, life.effect, outcome, tally, digest)
            return outcome
        except FileError as flaw:
            return self._without_file(entry, flaw)
        except (CredentialRefused, MemberStuck):
            self._note_doubt_of(life, entry)
            raise
        finally:
            if context.permit is not None:
                shared.sender.return_unused(context)

    def _was_sent(self, operation: AnyOperation, entry: Entry, digest: bytes) -> bool:
        """Return whether nothing has to be sent, because the same was sent before and the item is not in doubt."""
        if self._sent_writes is None or not isinstance(operation, SkipsUnchanged):
            return False
        if self.shared.is_preview or self.is_in_doubt(entry):
            return False
        since = self.shared.clock.now() - operation.resend_after_s
        return self._sent_writes.was_sent(_place(operation, entry.item), digest, since)

    def _forget_sent(self, operation: AnyOperation, item: Item) -> None:
        """Forget what was last sent to the place of an item, which is about to send something there."""
        if self._sent_writes is not None and isinstance(operation, SkipsUnchanged) and not self.shared.is_preview:
            self._sent_writes.forget(_place(operation, item))

    def _note_sent(self, operation: AnyOperation, item: Item, outcome: Outcome, digest: bytes) -> None:
        """Note the digest that the platform has taken."""
        if self._sent_writes is not None and outcome.kind is OutcomeKind.SUCCEEDED:
            self._sent_writes.note(_place(operation, item), digest, self.shared.clock.now())

    def _remember(
        self,
        operation: AnyOperation,
        item: Item,
        effect: Effect | None,
        outcome: Outcome,
        tally: ItemTally,
        digest: bytes,
    ) -> None:
        """Remember what a write has changed, for the items that come to the same thing later, and its `sent_digest`."""
        if may_create(operation, effect):
            tally.new_names = names_made(operation, item, effect, outcome)
            self.shared.recent_creations.add(tally.new_names, self.shared.clock.monotonic())
        if not tally.is_alone or tally.new_names or isinstance(operation, ChangesThings):
            self.shared.recent_writes.add(operation, item, effect, outcome, self.shared.clock.monotonic())
        if digest:
            self._note_sent(operation, item, outcome, digest)

    async def _overwriting(
        self,
        operation: AnyOperation,
        entry: Entry,
        item: Item,
        life: ItemRun,
        outcome: Outcome,
        tally: ItemTally,
    ) -> Outcome:
        """Return how an item ends that was to overwrite what is there: a write that was sent before may have been done,
        all of it or a part."""
        sent = self.shared.overwritten.pop((entry.job, entry.index), None)
        if sent is None:
            return outcome
        match outcome.kind:
            case OutcomeKind.SUCCEEDED:
                tally.before = sent.before_both(operation, item, tally.before)
            case OutcomeKind.UNCHANGED:
                tally.before = sent.sent.before
                return succeeded(outcome.result, note=APPLIED_BEFORE, payload=outcome.payload)
            case OutcomeKind.FAILED | OutcomeKind.SKIPPED:
                return await life.settled_after(sent.lost(self.shared.clock.monotonic()), outcome)
        return outcome

    async def complete(self, operation: AnyOperation, entry: Entry) -> Item:
        """Return the item as it is sent: files and secrets inline, and what the plan fixes.

        Raises:
            FileError: a file or a secret can't be used.
        """
        return self._completed(operation, await self._contents.load(operation, entry))

    def _completed(self, operation: AnyOperation, item: Item) -> Item:
        if isinstance(operation, HoldsSecrets):
            item = load_secrets(self._secrets, operation, item, remember)
        if isinstance(operation, PlannedOnce) and (began_at := self._began_at()) is not None:
            item = operation.planned(item, began_at)
        return item

    def is_in_doubt(self, entry: Entry) -> bool:
        """Return whether a write of this item was sent and its answer lost."""
        key = entry.job, entry.index
        return key in self._lost_writes or key in self.shared.overwritten

    def is_to_be_settled(self, entry: Entry) -> bool:
        """Return whether it is known what to look for before anything of this item is sent again."""
        return (entry.job, entry.index) in self._lost_writes

    def lost_write(self, entry: Entry, lost_write: LostWrite) -> None:
        """Note that a write that this item shares was lost: it is settled when the item is next worked on."""
        self._lost_writes[entry.job, entry.index] = lost_write

    def _without_file(self, entry: Entry, flaw: FileError) -> Outcome:
        if self.is_in_doubt(entry):
            return unknown(f"it was sent before and the answer was lost, and now it can't be repeated: {flaw}")
        return failed(ErrorCode.INVALID_ITEM, str(flaw))

    def _note_doubt_of(self, life: ItemRun | None, entry: Entry) -> None:
        """Note what is settled first where an item begins anew with another member of its pool."""
        if life is not None and (unsettled := life.unsettled) is not None:
            self.lost_write(entry, unsettled)

    def refused_write(self, entry: Entry, refused: LostWrite) -> None:
        """Note that a write that this item shares was refused, or that its answer does not show this item."""
        self._refused_writes[entry.job, entry.index] = refused

    def _doubt_of(self, entry: Entry, tally: ItemTally) -> LostWrite | None:
        lost_write = self._lost_writes.pop((entry.job, entry.index), None)
        if lost_write is not None:
            tally.started_at, tally.started = lost_write.lost.sent_at, self.shared.clock.monotonic()
        return lost_write


def _place(operation: AnyOperation, item: Item) -> str:
    return f"{operation.name} {' '.join(operation.lanes(item))}".casefold()


class FileContents:
    """Reads the files that items name.

    Args:
        base_dir: folder of the manifest.
    """

    def __init__(self, base_dir: Path, disk: Disk) -> None:
        self._base_dir, self._disk = base_dir, disk
        self._room = anyio.Semaphore(AT_ONCE)

    async def load(self, operation: AnyOperation, entry: Entry) -> Item:
        """Return the item of `entry` with its files inline.

        Raises:
            FileError: a file is not what it was when it was checked, or can't be read any more.
        """
        if not _named(operation, entry.item):
            return entry.item
        async with self._room:
            return await beside(self._disk, lambda: load_files(self._base_dir, operation, entry))

    async def refuse_changes(self, operation: AnyOperation, entry: Entry) -> None:
        """Raise what `load` raises, for an item that need not be sent, without converting anything.

        Raises:
            FileError: as `load`.
        """
        if isinstance(operation, TakesFiles) and _named(operation, entry.item):
            async with self._room:
                await self._disk(lambda: refuse_changes(self._base_dir, operation, entry))


async def _not_misled(
    life: ItemRun, ended: Outcome | LostWrite | Again, tally: ItemTally
) -> Outcome | LostWrite | Again:
    """Return how the steps of an item end where no kept answer misleads them; `ended`: how they have ended."""
    is_bad = isinstance(ended, Outcome) and ended.error is not None and ended.error.code is ErrorCode.BAD_RESPONSE
    if is_bad and life.effect is None and tally.begin_without_kept():
        return await life.steps()
    return ended


def sent_digest(operation: AnyOperation, entry: Entry) -> bytes:
    """Return the `sent_digest` of an item, from what the check found in its files; empty where no digest is known."""
    if not isinstance(operation, SkipsUnchanged):
        return b""
    named = _named(operation, entry.item)
    if not named:
        return operation.sent_digest(entry.item)
    checked = [entry.files[field].counted for field in named if field in entry.files]
    is_known = len(checked) == len(named) and all(checked)
    return operation.sent_digest(entry.item, b"".join(checked)) if is_known else b""


def _named(operation: AnyOperation, item: Item) -> list[str]:
    """Return the fields of `item` that name a file."""
    if not isinstance(operation, TakesFiles):
        return []
    return [field for field in operation.file_fields if getattr(item, field) is not None]
