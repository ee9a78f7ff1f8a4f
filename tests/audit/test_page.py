"""The page of a night says how much it leaves out."""

from bulk.audit.comparison.drift import Drift, ItemChange
from bulk.audit.history import Night
from bulk.audit.page.page import MOST_ROWS, page_of
from bulk.audit.result import AuditResult

ROWS = MOST_ROWS + 345


def test_changes_of_every_kind_count_for_those_that_are_left_out() -> None:
    """A night in which items only came: the page has the first rows, and says how many more there are."""
    added = ItemChange(
        job="hooks", operation="webhook.list", id=None, item={}, kind="added", before_at="", first_seen="2026-11-27"
    )
    result = AuditResult(
        name="fleet",
        history="audits/fleet",
        night=Night(run="night", at="2026-11-27T00:00:00Z"),
        exit_code=0,
        run_exit_code=0,
        drift=Drift(added=ROWS),
        changes=(added,) * ROWS,
    )
    assert "And 345 more; <code>bulk sql</code>" in page_of(result)
    few = AuditResult(
        name="fleet",
        history="audits/fleet",
        night=result.night,
        exit_code=0,
        run_exit_code=0,
        drift=Drift(added=MOST_ROWS),
        changes=(added,) * MOST_ROWS,
    )
    assert "more; <code>bulk sql</code>" not in page_of(few)
