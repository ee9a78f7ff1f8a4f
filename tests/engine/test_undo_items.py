"""How the items of a run are taken back: what the check would refuse is listed, and never written into a manifest."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bulk.engine.migrations.undo_items import NOT_GIVEN_BACK, PERHAPS_OURS, WITHHELD, Taken, of_job
from bulk.ledger.records import Record
from bulk.ledger.view import LedgerView
from bulk.model import UNSEEN, OutcomeKind
from bulk.operation import find
from bulk.undo import Irreversible, Undo
from bulk_jobs.shared import hook_settings
from tests.canaries import HOOK_SECRET
from tests.ledger.samples import finished, opened
from tests.manifest.making import a_job

HOOK = {"org": "acme", "hook_id": 7}
UPDATE = "organization-configuration.update"
CONFIGURATION = {"org": "acme", "configuration_id": 9}
URL = "https://hooks.example.com/bulk"
LINK = "secret_scanning_push_protection_custom_link"
BYPASS = "secret_scanning_delegated_bypass_options"
REVIEWER = {"reviewer_id": 3, "reviewer_type": "TEAM", "mode": "ALWAYS"}


def taken(
    run_dir: Path,
    name: str,
    item: dict[str, Any],
    before: Any,
    kind: OutcomeKind = OutcomeKind.SUCCEEDED,
    result: dict[str, Any] | None = None,
) -> list[Taken]:
    """How the item of a run of one item is taken back."""
    with opened(run_dir) as ledger:
        ledger.commit([Record(0, replace(finished(0, kind, result=result or {}), item=item), before=before)])
    return list(of_job(LedgerView(run_dir), a_job(find(name), [], number=0)))


@pytest.mark.parametrize(
    ("name", "item", "before", "why"),
    [
        ("webhook.delete", HOOK, {"config": {"url": "chat:room"}, "events": ["push"]}, "http or https URL"),
        ("webhook.delete", HOOK, {"config": {"url": URL}, "events": []}, "at least 1 entry"),
        ("webhook.update-config", {**HOOK, "url": URL}, {"config": {"url": 7}}, "expected a string"),
        (
            UPDATE,
            {**CONFIGURATION, "secret_scanning": "disabled"},
            {"secret_scanning": "partially"},
            "expected one of",
        ),
        ("enterprise-security.update", {"enterprise": "acme", LINK: URL}, {LINK: "wiki/page"}, "expected a URL"),
    ],
)
def test_what_the_check_would_refuse_is_listed(
    name: str, item: dict[str, Any], before: Any, why: str, tmp_path: Path
) -> None:
    """A value that was shown, and that no item can have, is the reason why its item is not taken back."""
    (found,) = taken(tmp_path, name, item, before)
    assert isinstance(found.way, Irreversible)
    assert found.way.why.startswith(NOT_GIVEN_BACK)
    assert why in found.way.why


def test_what_is_shown_in_another_form_is_given_back(tmp_path: Path) -> None:
    """A switch that is shown as a number, and reviewers that are shown with the number of their configuration."""
    shown = {"config": {"url": URL, "insecure_ssl": 0}, "events": ["push"], "active": True}
    (found,) = taken(tmp_path / "hook", "webhook.delete", HOOK, hook_settings.image_of_hook(shown))
    assert isinstance(found.way, Undo)
    assert found.way.item["config"] == {"url": URL, "content_type": "form", "insecure_ssl": "0"}
    for name, result in (("webhook.delete", {}), ("webhook.update", {"config": {"url": URL}, "events": ["FORK"]})):
        before = hook_settings.image_of_hook({**shown, "events": ["PUSH", "Pull_Request"]})
        (found,) = taken(tmp_path / f"{name}-events", name, HOOK, before, result=result)
        assert isinstance(found.way, Undo)
        assert found.way.item["events"] == ["push", "pull_request"]
    before = {BYPASS: {"reviewers": [{"security_configuration_id": 9, **REVIEWER}]}}
    (found,) = taken(tmp_path / "list", UPDATE, {**CONFIGURATION, BYPASS: {"reviewers": []}}, before)
    assert isinstance(found.way, Undo)
    assert found.way.item[BYPASS] == {"reviewers": [REVIEWER]}
    told = {**REVIEWER, "reviewer_id": "3", "reviewer_type": "Team"}
    before = {
        BYPASS: {"reviewers": [told]},
        "secret_scanning": "NOT_SET",
        "dependency_graph_autosubmit_action_options": {"labeled_runners": "false"},
        "code_scanning_options": {"allow_advanced": 1},
        "description": "True",
    }
    given = {
        BYPASS: {"reviewers": []},
        "secret_scanning": "enabled",
        "dependency_graph_autosubmit_action_options": {"labeled_runners": True},
        "code_scanning_options": {"allow_advanced": False},
        "description": "",
    }
    (found,) = taken(tmp_path / "words", UPDATE, {**CONFIGURATION, **given}, before, result=given)
    assert isinstance(found.way, Undo)
    assert (
        found.way.item.items()
        >= {
            BYPASS: {"reviewers": [REVIEWER]},
            "secret_scanning": "not_set",
            "dependency_graph_autosubmit_action_options": {"labeled_runners": False},
            "code_scanning_options": {"allow_advanced": True},
            "description": "True",
        }.items()
    )
    before, off = {"config": {}, "active": "true"}, {"config": {"url": URL}, "active": False}
    (found,) = taken(
        tmp_path / "switch", "webhook.update", {**HOOK, "active": False, "drop_secret": True}, before, result=off
    )
    assert isinstance(found.way, Undo)
    assert found.way.item["active"] is True


def test_what_may_be_ours_is_listed(tmp_path: Path) -> None:
    """An item that was refused and is as asked for is `unchanged`, and has a before-image; others of them have none."""
    item = {"owner": "acme", "repo": "api", "path": "a", "message": "m", "sha": "a" * 40}
    assert taken(tmp_path / "so", "contents.delete", item, UNSEEN, OutcomeKind.UNCHANGED) == []
    (found,) = taken(tmp_path / "ours", "contents.delete", item, "a" * 40, OutcomeKind.UNCHANGED)
    assert found.way == Irreversible(PERHAPS_OURS)


def test_a_mask_is_never_written(tmp_path: Path) -> None:
    """failures.md row 62: what it was before looked like a secret, and is not kept: the item is listed instead. A mask
    that is only compared does no harm."""
    item, plain = {**CONFIGURATION, "description": "d"}, {"description": "all is well"}
    (found,) = taken(tmp_path / "kept", UPDATE, item, plain, result={"description": "password=***"})
    assert isinstance(found.way, Undo)
    assert found.way.item["description"] == "all is well"
    secret = {"description": f"see https://a.example/?token={HOOK_SECRET}"}
    (found,) = taken(tmp_path / "withheld", UPDATE, item, secret, result={"description": "d"})
    assert found.way == Irreversible(WITHHELD)
