"""What takes an item back: nothing that would write a mask in the place of what it was."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bulk.capabilities import Irreversible, Undo, Undoable
from bulk.engine.migrations.undo_items import WITHHELD, of_job
from bulk.ledger.records import Record
from bulk.ledger.view import LedgerView
from bulk.operation import Item, ItemFlaw
from tests.canaries import HOOK_SECRET
from tests.ledger.samples import finished, opened
from tests.manifest.making import a_job


class DescribedItem(Item, frozen=True, kw_only=True):
    """A repository, as the samples of ledgers have them."""

    owner: str
    repo: str


class Describe(Undoable[DescribedItem]):
    """Gives a repository another description."""

    name = "repository.describe"
    Item = DescribedItem
    is_read = False

    def check(self, item: DescribedItem) -> Iterator[ItemFlaw]:
        return iter(())

    def lanes(self, item: DescribedItem) -> tuple[str, ...]:
        return (item.repo,)

    def undo(self, item: DescribedItem, before: Any, result: Any) -> Undo | Irreversible:
        return Undo(operation=self.name, item={"repo": item.repo, **before, "expect": {"text": "password=***"}})


def test_a_mask_is_never_written(tmp_path: Path) -> None:
    """failures.md row 62: what it was before looked like a secret, and is not kept: the item is listed instead. A mask
    that is only compared does no harm."""
    with opened(tmp_path / "run") as ledger:
        for index, text in enumerate((f"see https://a.example/?token={HOOK_SECRET}", "all is well")):
            ledger.commit([Record(1, finished(index, job=1, result={}), before={"text": text})])
    taken = list(of_job(LedgerView(tmp_path / "run"), a_job(Describe(), [], number=1)))
    assert [each.index for each in taken] == [1, 0]
    assert isinstance(taken[0].way, Undo)
    assert taken[0].way.item["text"] == "all is well"
    assert taken[1].way == Irreversible(WITHHELD)
