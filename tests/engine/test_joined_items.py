"""Changes of the same thing are taken back at once, unless somebody else has changed it in between."""

from typing import Any

import msgspec
import pytest

from bulk.engine.migrations.changed_things import things_of
from bulk.engine.migrations.joined_items import PlacedItem, join
from bulk.operation import find
from bulk.undo import Undo, Undoable
from tests.manifest.making import a_job

FILE = {"owner": "acme", "repo": "api", "path": "a", "message": "m", "branch": "main"}
HOOK = {"org": "acme", "hook_id": 7, "drop_secret": True}
TEAM = {"enterprise": "acme", "enterprise-team": "ent:ops"}
CONFIGURATION = {"org": "acme", "configuration_id": 9}
URL = "https://u.example.com/"
SCANNING, ALERTS = (f"{name}_enabled_for_new_repositories" for name in ("secret_scanning", "dependabot_alerts"))

Change = tuple[str, dict[str, Any], Any, Any]
"""Name of the operation, its item, what was there before, and the result."""


def put(before: str | None, left: str) -> Change:
    """A write of a file whose blobs are these letters."""
    result = {"sha": left * 40, "commit": {"parent": f"commit before {left}"}}
    return "contents.put", {**FILE, "content": ""}, before and before * 40, result


def deleted(before: str) -> Change:
    """A deletion of a file."""
    result = {"sha": before * 40, "commit": {"parent": f"commit before {before}"}}
    return "contents.delete", FILE, before * 40, result


def security(before: dict[str, bool], left: dict[str, bool]) -> Change:
    """A change of an enterprise's settings."""
    return "enterprise-security.update", {"enterprise": "acme", **left}, before, left


def taken_back(*changes: Change) -> list[Undo]:
    """What takes back these changes, which a run made in this order."""
    items = {}
    for place, (name, item, before, result) in enumerate(reversed(changes)):
        operation = find(name)
        assert isinstance(operation, Undoable)
        way = operation.undo(msgspec.convert(item, operation.Item), before, result)
        assert isinstance(way, Undo)
        row = {"item": item, "result": result}
        items[place] = PlacedItem(way, operation, things_of(a_job(operation, [], number=0), row), f"of {place}")
    join(items)
    assert all(item.way.file is None or item.file_credential == f"of {place}" for place, item in items.items())
    return [items[place].way for place in sorted(items)]


@pytest.mark.parametrize(
    ("changes", "mode", "sha", "restored"),
    [
        ((put("a", "b"), put("b", "c"), put("c", "d")), "replace", "d", "a"),
        ((put("a", "b"), deleted("b")), "create", None, "a"),
        ((deleted("a"), put(None, "b")), "replace", "b", "a"),
        ((put(None, "b"), put("b", "c")), None, "c", None),
        ((put("a", "b"), put("b", "a"), put("a", "c")), "replace", "c", "a"),
    ],
)
def test_a_file_is_taken_back_at_once(
    changes: tuple[Change, ...], mode: str | None, sha: str | None, restored: str | None
) -> None:
    """It gets the bytes from before the first write, read at the commit before that, if it is as the last one left."""
    (way,) = taken_back(*changes)
    assert (way.operation, way.item.get("mode")) == ("contents.put" if restored else "contents.delete", mode)
    assert way.item.get("sha") == (sha and sha * 40)
    assert (way.file and way.file.blob_sha) == (restored and restored * 40)
    assert way.file is None or way.file.item["ref"] == f"commit before {changes[0][3]['sha'][0]}"


@pytest.mark.parametrize(
    "changes", [(put(None, "b"), deleted("b")), (deleted("a"), put(None, "a")), (put("a", "b"), put("b", "a"))]
)
def test_what_the_run_itself_has_put_back_is_not_taken_back(changes: tuple[Change, ...]) -> None:
    """Nothing is left to do."""
    assert taken_back(*changes) == []


@pytest.mark.parametrize(
    "changes",
    [
        (put("a", "b"), put("f", "c")),
        (put("a", "b"), put(None, "c")),
        (put(None, "b"), deleted("f")),
        (
            ("organization-configuration.update", {**CONFIGURATION, "description": "1"}, {"description": "0"}, {}),
            ("organization-configuration.update", {**CONFIGURATION, "description": "2"}, {"description": "theirs"}, {}),
        ),
        (
            ("webhook.update", {**HOOK, "events": ["fork"]}, {"config": {}, "events": ["push"]}, {"config": {}}),
            ("webhook.update", {**HOOK, "events": ["push"]}, {"config": {}, "events": ["issues"]}, {"config": {}}),
        ),
    ],
)
def test_where_somebody_else_came_between_both_stay(changes: tuple[Change, ...]) -> None:
    """What the first item left is not what the second one found: the thing goes back to what somebody else made of it,
    and the item that takes back the first change is a conflict."""
    assert len(taken_back(*changes)) == 2


def test_settings_are_taken_back_together_where_they_are_the_same() -> None:
    """Each setting gets the value from before its first change, and is expected as its last change left it."""
    (way,) = taken_back(
        security({SCANNING: False, ALERTS: True}, {SCANNING: True, ALERTS: False}),
        security({ALERTS: False}, {ALERTS: True}),
        security({SCANNING: True}, {SCANNING: False}),
    )
    assert way.item == {
        "enterprise": "acme",
        SCANNING: False,
        ALERTS: True,
        "wait": True,
        "expect": {SCANNING: False, ALERTS: True},
    }
    assert (
        len(taken_back(security({SCANNING: False}, {SCANNING: True}), security({ALERTS: False}, {ALERTS: True}))) == 2
    )


def test_an_item_that_saw_what_was_there_before_both_is_no_change_of_somebody_else() -> None:
    """A copy of the platform may lag behind the first change when the second item looks."""
    change = "organization-configuration.update"
    (way,) = taken_back(
        (change, {**CONFIGURATION, "description": "1"}, {"description": "0"}, {"description": "1"}),
        (change, {**CONFIGURATION, "description": "2"}, {"description": "0"}, {"description": "2"}),
    )
    assert way.item == {**CONFIGURATION, "description": "0", "expect": {"description": "2"}}


def test_a_webhook_is_taken_back_at_once() -> None:
    """Updates of it and of its configuration are one, unless no update can say both; one that was made is deleted."""
    hook = {"config": {"url": f"{URL}1", "content_type": "json"}, "events": ["fork"], "active": True}
    both = (
        ("webhook.update-config", {**HOOK, "url": f"{URL}1"}, {"config": {"url": URL, "secret": "*"}}, hook["config"]),
        (
            "webhook.update",
            {**HOOK, "events": ["push"]},
            {"config": {}, "events": ["fork"]},
            {**hook, "events": ["push"]},
        ),
        (
            "webhook.update",
            {**HOOK, "config": {"url": f"{URL}2"}},
            {"config": {"url": f"{URL}1"}},
            {**hook, "config": {"url": f"{URL}2"}},
        ),
    )
    (way,) = taken_back(*both)
    assert (way.operation, way.loses) == ("webhook.update", "its secret")
    assert way.item == {
        **HOOK,
        "allow_insecure_ssl": True,
        "allow_unknown_events": True,
        "config": {"url": URL},
        "events": ["fork"],
        "expect": {"config": {"url": f"{URL}2"}, "events": ["push"]},
    }
    made = ("webhook.create", {"org": "acme", "config": {"url": f"{URL}1"}}, None, {"id": 7, **hook})
    (way,) = taken_back(made, both[2])
    assert (way.operation, way.item["expect"]["config"]["url"]) == ("webhook.delete", f"{URL}2")
    kind: Change = ("webhook.update-config", {**HOOK, "content_type": "json"}, {"config": {"content_type": "form"}}, {})
    assert [way.operation for way in taken_back(kind, both[1])] == ["webhook.update", "webhook.update-config"]


def test_of_a_team_the_organizations_that_both_name_count_once() -> None:
    """The first change says what was there before; what the last one has put back is left out."""
    ways = taken_back(
        ("team-organization.remove", {**TEAM, "organization_slugs": ["a", "b", "c"]}, ["a", "b", "c"], {}),
        ("team-organization.add", {**TEAM, "organization_slugs": ["B", "d"]}, [], {}),
        ("team-organization.unassign", {**TEAM, "org": "d"}, {"login": "d"}, {}),
    )
    assert [(way.operation, way.item["organization_slugs"]) for way in ways] == [("team-organization.add", ["a", "c"])]
