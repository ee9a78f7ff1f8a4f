"""What an audit reads night after night, and what somebody may change in between."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.hostile.http.reading import ACME, CORP, HOOK, REPO, TEAM
from tests.hostile.http.writing import ORG, merged, other
from tests.hostile.http.writing_hooks import HOOK_KEY
from tests.hostile.platform import Platform
from tests.hostile.rows import Row
from tests.hostile.store.seeds import BEGAN, ORGANIZATIONS
from tests.hostile.store.state import State

Change = Callable[[Platform, float], None]
MANY = 130
"""Webhooks of the organization whose list has several pages (count)."""


def _nothing(platform: Platform, now: float) -> None:
    """Nobody changes anything."""


def _many(state: State, at: float) -> None:
    hook = state.get(HOOK_KEY, at)
    for number in range(MANY):
        url = {**hook["config"], "url": f"https://hooks.example.test/{number}"}
        state.set(("hook", ORG, 2_000 + number), {**hook, "id": 2_000 + number, "config": url}, at)


@dataclass(frozen=True, slots=True)
class Watch:
    """One read of an audit.

    Attributes:
        row: its operation and item, as the table has them. change: what somebody does after the first night.
        is_missing_ok: whether its job takes what is not there.
    """

    name: str
    row: Row
    change: Change = _nothing
    is_missing_ok: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether somebody changes what it reads."""
        return self.change is not _nothing


@dataclass(frozen=True, slots=True)
class _Read:
    """A read, and what may become of what it reads."""

    operation: str
    item: dict[str, Any]
    changes: dict[str, Change] = field(default_factory=dict)
    is_missing_ok: bool = False
    is_list: bool = False
    names_itself: bool = True
    has_any_body: bool = False
    more: str = ""
    prepare: Callable[[State, float], None] = lambda state, at: None

    def watches(self) -> list[Watch]:
        """One without a change, and one for each change."""
        name = f"{self.operation}{self.more}"
        row = Row(
            name,
            [self.item],
            is_right=lambda result: True,
            is_list=self.is_list,
            names_itself=self.names_itself,
            has_any_body=self.has_any_body,
            prepare=self.prepare,
        )
        return [
            Watch(f"{name}, {what}", row, change, self.is_missing_ok)
            for what, change in {"unchanged": _nothing, **self.changes}.items()
        ]


def _file(path: str) -> tuple[Any, ...]:
    return ("file", 601, "trunk", path)


OWNERS, GONE = {**REPO, "path": "CODEOWNERS"}, {**REPO, "path": "docs/SECURITY.md"}
NEW_HOOK = {
    "id": 1_500,
    "name": "web",
    "active": True,
    "events": ["push"],
    "config": {"url": "https://hooks.example.test/theirs", "content_type": "json", "insecure_ssl": "0"},
    "created_at": "2026-11-20T00:00:00Z",
    "updated_at": "2026-11-20T00:00:00Z",
}
_READS = (
    _Read(
        "contents.get",
        OWNERS,
        {"changed": other(_file("CODEOWNERS"), b"* @other\n"), "gone": other(_file("CODEOWNERS"), None)},
        is_missing_ok=True,
    ),
    _Read(
        "contents.get",
        GONE,
        {"made": other(_file("docs/SECURITY.md"), b"Tell us.\n")},
        is_missing_ok=True,
        more=" absent",
    ),
    _Read(
        "contents.get",
        {**OWNERS, "media_type": "raw"},
        {"changed": other(_file("CODEOWNERS"), b"* @other\n")},
        names_itself=False,
        has_any_body=True,
        more=" raw",
    ),
    _Read(
        "contents.get",
        {**REPO, "path": "docs"},
        {"an entry less": other(_file("docs/end.md"), None), "an entry more": other(_file("docs/more.md"), b"More.\n")},
        is_list=True,
        more=" directory",
    ),
    _Read(
        "readme.get",
        REPO,
        {"changed": other(_file("README.md"), b"# Another\n"), "gone": other(_file("README.md"), None)},
        is_missing_ok=True,
    ),
    _Read(
        "webhook.list",
        ACME,
        {"an entry more": other(("hook", ORG, 1_500), NEW_HOOK), "empty": other(HOOK_KEY, None)},
        is_list=True,
        names_itself=False,
    ),
    _Read(
        "webhook.list",
        ACME,
        {"an entry less": other(("hook", ORG, 2_001), None)},
        is_list=True,
        names_itself=False,
        more=" many",
        prepare=_many,
    ),
    _Read(
        "webhook.get",
        HOOK,
        {"changed": merged(HOOK_KEY, events=["star"]), "gone": other(HOOK_KEY, None)},
        is_missing_ok=True,
    ),
    _Read(
        "webhook.get-config",
        HOOK,
        {"gone": other(HOOK_KEY, None)},
        is_missing_ok=True,
        names_itself=False,
    ),
    _Read(
        "team-organization.list",
        TEAM,
        {"an entry more": other(("assigned", 701, ORGANIZATIONS["nova"]), True)},
        is_list=True,
        names_itself=False,
    ),
    _Read("team-organization.get", {**TEAM, "org": "acme"}, {"gone": other(("assigned", 701, ORG), None)}),
    _Read(
        "enterprise-security.get",
        CORP,
        {"changed": merged(("security", "corp"), secret_scanning_enabled_for_new_repositories=True)},
        names_itself=False,
    ),
    _Read(
        "organization-configuration.get",
        {**ACME, "configuration_id": 801},
        {"changed": merged(("configuration", ("organization", ORG), 801), secret_scanning="enabled")},
    ),
)
WATCHES = tuple(watch for read in _READS for watch in read.watches())


def prepared(watch: Watch, state: State) -> None:
    """Put in place what a watch needs."""
    watch.row.prepare(state, BEGAN + 1)
