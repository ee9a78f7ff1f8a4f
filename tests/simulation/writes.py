"""The one table of what can be written: every operation that writes, in each way that matters when an answer is lost.

Every test of lost answers takes its writes from here; one of them refuses an operation that writes and has no row.
Source: operations.md.
"""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tests.canaries import HOOK_SECRET
from tests.simulation.schedules import put, snapshot

URL = "http://127.0.0.1:9/hook"
SECRET = HOOK_SECRET
HOOK = {"org": "acme-ops", "hook_id": 4001}
UNREAD = 60
"""More threads than the platform marks at once."""
NEWS = f"notifications: [{{user: octoadmin, repository: acme-eng/hello-world, count: {UNREAD}}}]\n"

_README = b"# Hello World\n\nStandard seed repository.\n"
_BLOB = hashlib.sha1(b"blob %d\0%b" % (len(_README), _README), usedforsecurity=False).hexdigest()
_FILE = {"owner": "acme-eng", "repo": "hello-world", "message": "Change a file"}
_TEAM = {"enterprise": "acme", "enterprise-team": "ent:platform"}
_RULESET = {
    "org": "acme-eng",
    "name": "Protect main",
    "enforcement": "active",
    "conditions": {"ref_name": {"include": ["~DEFAULT_BRANCH"]}, "repository_name": {"include": ["~ALL"]}},
    "rules": [{"type": "deletion"}],
}
_STRICT = {"org": "acme-eng", "configuration_id": 2002}


class Proof(StrEnum):
    """What shows that a write was applied."""

    READ = "a read, at once: it is never sent again"
    LATER_READ = "a read, when the platform has done it in the background; a repeat before that changes nothing"
    REPEAT = "the answer of a repeat, which changes nothing; where no answer ever arrives it stays unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write.

    Attributes:
        effect: what the journal says of it, at its beginning.
        proof: what shows that it was applied where its answer was lost.
        seed_data: what the platform must hold besides the standard data, as YAML.
    """

    operation: str
    item: dict[str, Any]
    effect: str
    proof: Proof
    seed_data: str = ""


def _read_back(operation: str, item: dict[str, Any], effect: str) -> Write:
    return Write(operation=operation, item=item, effect=effect, proof=Proof.READ)


def _read_later(operation: str, item: dict[str, Any], effect: str) -> Write:
    return Write(operation=operation, item=item, effect=effect, proof=Proof.LATER_READ)


def _repeated(operation: str, item: dict[str, Any], effect: str, seed_data: str = "") -> Write:
    return Write(operation=operation, item=item, effect=effect, proof=Proof.REPEAT, seed_data=seed_data)


WRITES: dict[str, Write] = {
    "new file": _read_back(
        "contents.put", put("hello-world", "new.txt", "new", "acme-eng"), "commit acme-eng/hello-world new.txt "
    ),
    "replaced file": _read_back(
        "contents.put",
        put("hello-world", "docs/guide.md", "other", "acme-eng"),
        "commit acme-eng/hello-world docs/guide.md ",
    ),
    "created file": _read_back(
        "contents.put",
        put("hello-world", "new.txt", "new", "acme-eng", mode="create"),
        "commit acme-eng/hello-world new.txt ",
    ),
    "replaced blob": _read_back(
        "contents.put",
        put("hello-world", "README.md", "other", "acme-eng", mode="replace", sha=_BLOB),
        "commit acme-eng/hello-world README.md ",
    ),
    "deleted file": _read_back(
        "contents.delete", {**_FILE, "path": "README.md"}, "commit acme-eng/hello-world README.md "
    ),
    "deleted blob": _read_back(
        "contents.delete", {**_FILE, "path": "README.md", "sha": _BLOB}, "commit acme-eng/hello-world README.md "
    ),
    "snapshot": _repeated(
        "snapshot.create",
        snapshot("hello-world", "build", owner="acme-eng"),
        "snapshot acme-eng/hello-world build detector ",
    ),
    "organization": _read_back(
        "organization.create", {"login": "acme-web", "admin": "octoadmin"}, "organization acme-web created"
    ),
    "rename": _read_back(
        "organization.rename",
        {"org": "acme-labs", "login": "acme-research"},
        "organization acme-labs renamed to acme-research",
    ),
    "rename, followed": _read_back(
        "organization.rename",
        {"org": "acme-labs", "login": "acme-research", "wait": True},
        "organization acme-labs renamed to acme-research",
    ),
    "team added": _read_back(
        "team-organization.add",
        {**_TEAM, "organization_slugs": ["acme-ops", "acme-labs"]},
        "team ent:platform assigned to acme-ops, acme-labs",
    ),
    "team removed": _read_back(
        "team-organization.remove",
        {**_TEAM, "organization_slugs": ["acme-eng"]},
        "team ent:platform removed from acme-eng",
    ),
    "team assigned": _read_back(
        "team-organization.assign", {**_TEAM, "org": "acme-ops"}, "team ent:platform assigned to acme-ops"
    ),
    "team unassigned": _read_back(
        "team-organization.unassign", {**_TEAM, "org": "acme-eng"}, "team ent:platform removed from acme-eng"
    ),
    "enterprise configuration": _read_back(
        "enterprise-configuration.create",
        {"enterprise": "acme", "name": "Strict", "secret_scanning": "enabled"},
        "configuration Strict created in enterprise acme",
    ),
    "configuration": _read_back(
        "organization-configuration.update",
        {"org": "acme-eng", "configuration_id": 2003, "description": "New"},
        "configuration 2003 of acme-eng changed: description",
    ),
    "deleted configuration": _read_back(
        "organization-configuration.delete", _STRICT, "configuration 2002 of acme-eng deleted"
    ),
    "attached to some": _read_later(
        "organization-configuration.attach",
        {**_STRICT, "scope": "selected", "selected_repository_ids": [1001]},
        "configuration 2002 attached to repositories 1001 of acme-eng",
    ),
    "attached to some, followed": _read_later(
        "organization-configuration.attach",
        {**_STRICT, "scope": "selected", "selected_repository_ids": [1001], "wait": True},
        "configuration 2002 attached to repositories 1001 of acme-eng",
    ),
    "attached to all": _repeated(
        "organization-configuration.attach",
        {**_STRICT, "scope": "all"},
        "configuration 2002 attached to repositories 1001, 1002, 1004 of acme-eng",
    ),
    "attached to all, followed": _repeated(
        "organization-configuration.attach",
        {**_STRICT, "scope": "all", "wait": True},
        "configuration 2002 attached to repositories 1001, 1002, 1004 of acme-eng",
    ),
    "default": _repeated(
        "organization-configuration.set-default",
        {**_STRICT, "default_for_new_repos": "all"},
        "configuration 2002 made default of acme-eng for all new repositories",
    ),
    "security": _read_later(
        "enterprise-security.update",
        {"enterprise": "acme", "dependabot_alerts_enabled_for_new_repositories": True},
        "enterprise acme security: dependabot_alerts_enabled_for_new_repositories=true",
    ),
    "security, followed": _read_later(
        "enterprise-security.update",
        {"enterprise": "acme", "dependabot_alerts_enabled_for_new_repositories": True, "wait": True},
        "enterprise acme security: dependabot_alerts_enabled_for_new_repositories=true",
    ),
    "security that can't be read": _repeated(
        "enterprise-security.update",
        {"enterprise": "acme", "advanced_security_enabled_new_user_namespace_repos": True},
        "enterprise acme security: advanced_security_enabled_new_user_namespace_repos=true",
    ),
    "product": _repeated(
        "enterprise-security.enable",
        {"enterprise": "acme", "security_product": "dependabot_alerts", "enablement": "enable_all"},
        "enterprise acme security: dependabot_alerts enable_all",
    ),
    "ruleset": _read_back("organization-ruleset.create", _RULESET, "ruleset Protect main of acme-eng created"),
    "webhook": _read_back(
        "webhook.create",
        {"org": "acme-eng", "config": {"url": URL, "secret": SECRET}, "active": False},
        "webhook 4002 of acme-eng created for http://127.0.0.1:9/hook",
    ),
    "webhook changed": _read_back(
        "webhook.update", {**HOOK, "active": False, "drop_secret": True}, "webhook 4001 of acme-ops updated: active"
    ),
    "webhook changed, with its secret": _repeated(
        "webhook.update",
        {**HOOK, "config": {"url": URL, "secret": SECRET}},
        "webhook 4001 of acme-ops updated: config.secret",
    ),
    "webhook's configuration": _read_back(
        "webhook.update-config",
        {**HOOK, "content_type": "form", "drop_secret": True},
        "webhook 4001 of acme-ops updated: config.content_type",
    ),
    "webhook's configuration, with its secret": _repeated(
        "webhook.update-config",
        {**HOOK, "content_type": "form", "secret": SECRET},
        "webhook 4001 of acme-ops updated: config.content_type, config.secret",
    ),
    "deleted webhook": _read_back("webhook.delete", HOOK, "webhook 4001 of acme-ops deleted"),
    "all read": _repeated("notification.mark-read", {}, "notifications of octoadmin up to 2027-01-15T08:00:00Z read"),
    "read up to": _repeated(
        "notification.mark-read",
        {"last_read_at": "2025-05-15T00:00:00Z", "wait": True},
        "notifications of octoadmin up to 2025-05-15T00:00:00Z read",
    ),
    "many read": _repeated(
        "notification.mark-read", {}, "notifications of octoadmin up to 2027-01-15T08:00:00Z read", NEWS
    ),
    "many read, followed": _repeated(
        "notification.mark-read", {"wait": True}, "notifications of octoadmin up to 2027-01-15T08:00:00Z read", NEWS
    ),
    "thread read": _read_back("thread.mark-read", {"thread_id": 2}, "thread 2 of octoadmin read"),
}
