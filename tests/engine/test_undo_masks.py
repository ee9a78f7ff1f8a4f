"""What takes an item back writes no mask in the place of what was there."""

from dataclasses import replace
from pathlib import Path

from bulk.capabilities import Irreversible, Undo
from bulk.engine.migrations.undo_items import WITHHELD, of_job
from bulk.ledger.records import Record
from bulk.ledger.view import LedgerView
from bulk.operation import find
from tests.canaries import HOOK_SECRET
from tests.ledger.samples import finished, opened
from tests.manifest.making import a_job

UPDATE = "organization-configuration.update"
ITEM = {"org": "acme", "configuration_id": 9, "description": "d"}


def test_a_mask_is_never_written(tmp_path: Path) -> None:
    """failures.md row 62: what it was before looked like a secret, and is not kept: the item is listed instead. A mask
    that is only compared does no harm."""
    befores = f"see https://a.example/?token={HOOK_SECRET}", "all is well"
    results = {"description": "d"}, {"description": "password=***"}
    with opened(tmp_path / "run") as ledger:
        for index, (before, result) in enumerate(zip(befores, results, strict=True)):
            ended = replace(finished(index, job=1, result=result), item=ITEM)
            ledger.commit([Record(1, ended, before={"description": before})])
    taken = list(of_job(LedgerView(tmp_path / "run"), a_job(find(UPDATE), [], number=1)))
    assert [each.index for each in taken] == [1, 0]
    assert isinstance(taken[0].way, Undo)
    assert taken[0].way.item["description"] == "all is well"
    assert taken[1].way == Irreversible(WITHHELD)
