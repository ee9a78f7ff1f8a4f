"""How the items of a run are taken back: what the check would refuse is listed, and never written into a manifest."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from bulk import operation
from bulk.capabilities import Irreversible, Undo
from bulk.engine.migrations.undo_items import NOT_GIVEN_BACK, PERHAPS_OURS, Taken, of_job
from bulk.manifest.manifest import Job
from bulk.model import UNSEEN
from bulk_jobs.shared import hook_settings

HOOK = {"org": "acme", "hook_id": 7}
CONFIGURATION = {"org": "acme", "configuration_id": 9}
URL = "https://hooks.example.com/bulk"
LINK = "secret_scanning_push_protection_custom_link"
BYPASS = "secret_scanning_delegated_bypass_options"
REVIEWER = {"reviewer_id": 3, "reviewer_type": "TEAM", "mode": "ALWAYS"}


@dataclass
class View:
    """The ledger of a run with one job: for each item its operation's fields, its before-image, outcome and result."""

    items: list[tuple[dict[str, Any], Any, str, Any]] = field(default_factory=list)

    def open_items(self, job: int) -> list[int]:
        return []

    def last_index(self, job: int) -> int:
        return len(self.items) - 1

    def befores(self, job: int, start: int, stop: int) -> dict[int, Any]:
        return {place: before for place, (_, before, _, _) in enumerate(self.items) if before is not UNSEEN}

    def lines_of(self, job: int, indexes: list[int], most_bytes: int) -> Mapping[int, bytes]:
        return {
            place: msgspec.json.encode({"item": item, "outcome": outcome, "result": result, "error": None})
            for place, (item, _, outcome, result) in enumerate(self.items)
            if place in indexes
        }


def taken(name: str, item: dict[str, Any], before: Any, outcome: str = "succeeded", result: Any = None) -> list[Taken]:
    """What of_job says of a run of one item."""
    job = Job(0, "j", operation.find(name))
    return list(of_job(View([(item, before, outcome, {} if result is None else result)]), job))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "item", "before", "why"),
    [
        ("webhook.delete", HOOK, {"config": {"url": "chat:room"}, "events": ["push"]}, "http or https URL"),
        ("webhook.delete", HOOK, {"config": {"url": URL}, "events": []}, "at least 1 entry"),
        ("webhook.update-config", {**HOOK, "url": URL}, {"config": {"url": 7}}, "expected a string"),
        (
            "organization-configuration.update",
            {**CONFIGURATION, "secret_scanning": "disabled"},
            {"secret_scanning": "partially"},
            "expected one of",
        ),
        ("enterprise-security.update", {"enterprise": "acme", LINK: URL}, {LINK: "wiki/page"}, "expected a URL"),
    ],
)
def test_what_the_check_would_refuse_is_listed(name: str, item: dict[str, Any], before: Any, why: str) -> None:
    """A value that was shown, and that no item can have, is the reason why its item is not taken back."""
    (found,) = taken(name, item, before)
    assert isinstance(found.way, Irreversible)
    assert found.way.why.startswith(NOT_GIVEN_BACK)
    assert why in found.way.why


def test_what_is_shown_in_another_form_is_given_back() -> None:
    """A switch that is shown as a number, and reviewers that are shown with the number of their configuration."""
    shown = {"config": {"url": URL, "insecure_ssl": 0}, "events": ["push"], "active": True}
    (found,) = taken("webhook.delete", HOOK, hook_settings.image_of_hook(shown))
    assert isinstance(found.way, Undo)
    assert found.way.item["config"] == {"url": URL, "content_type": "form", "insecure_ssl": "0"}
    before = {BYPASS: {"reviewers": [{"security_configuration_id": 9, **REVIEWER}]}}
    (found,) = taken("organization-configuration.update", {**CONFIGURATION, BYPASS: {"reviewers": []}}, before)
    assert isinstance(found.way, Undo)
    assert found.way.item[BYPASS] == {"reviewers": [REVIEWER]}


def test_what_may_be_ours_is_listed() -> None:
    """An item that was refused and is as asked for is `unchanged`, and has a before-image; others of them have none."""
    item = {"owner": "acme", "repo": "api", "path": "a", "message": "m", "sha": "a" * 40}
    assert taken("contents.delete", item, UNSEEN, "unchanged") == []
    (found,) = taken("contents.delete", item, "a" * 40, "unchanged")
    assert found.way == Irreversible(PERHAPS_OURS)
