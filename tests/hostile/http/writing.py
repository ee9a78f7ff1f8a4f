"""The rows of operations that write files, organizations and settings, and how somebody else would meddle."""

import base64
from collections.abc import Callable
from typing import Any

from tests.hostile.areas.contents import blob_sha
from tests.hostile.http.reading import ACME, CORP, REPO, TEAM
from tests.hostile.platform import Platform
from tests.hostile.rows import Look, Row
from tests.hostile.store.effects import Effect
from tests.hostile.store.seeds import FILES, ORGANIZATIONS
from tests.hostile.store.state import Key, State

NEW = b"* @boss @crew\n"
OF_OTHERS = b"* @somebody-else\n"
ORG = ORGANIZATIONS["acme"]
Item = dict[str, Any]


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def changed_by_another(platform: Platform, now: float, key: Key, value: Any) -> None:
    """Somebody else changes something."""
    platform.state.set(key, value, now)
    platform.effects.add(Effect(now, "somebody else's", key, value, "other"))


def other(key: Key, value: Any) -> Callable[[Platform, float], None]:
    return lambda platform, now: changed_by_another(platform, now, key, value)


def merged(key: Key, **changed: Any) -> Callable[[Platform, float], None]:
    """Somebody else changes some fields."""

    def meddle(platform: Platform, now: float) -> None:
        changed_by_another(platform, now, key, {**(platform.state.get(key, now) or {}), **changed})

    return meddle


def _put(path: str = "CODEOWNERS", **more: Any) -> Item:
    return {**REPO, "path": path, "message": "  Who owns what ", "content": _encoded(NEW), **more}


def _file(path: str) -> Key:
    return ("file", 601, "trunk", path)


def _is_file(path: str, data: bytes | None) -> Callable[[Look, Item], bool]:
    return lambda look, item: look.get(*_file(path)) == data


FILE_ROWS = (
    Row(
        "contents.put",
        [_put()],
        holds=_is_file("CODEOWNERS", NEW),
        meddle=other(_file("CODEOWNERS"), OF_OTHERS),
    ),
    Row(
        "contents.put new",
        [_put("docs/new.md")],
        holds=_is_file("docs/new.md", NEW),
        meddle=other(_file("docs/new.md"), OF_OTHERS),
    ),
    Row(
        "contents.put create",
        [_put("docs/made.md", mode="create")],
        holds=_is_file("docs/made.md", NEW),
        meddle=other(_file("docs/made.md"), OF_OTHERS),
        is_blind=True,
    ),
    Row(
        "contents.put replace",
        [_put(mode="replace", sha=blob_sha(FILES[601]["CODEOWNERS"]))],
        holds=_is_file("CODEOWNERS", NEW),
        meddle=other(_file("CODEOWNERS"), OF_OTHERS),
    ),
    Row(
        "contents.delete",
        [{**REPO, "path": "docs/guide.md", "message": "Away with it"}],
        holds=_is_file("docs/guide.md", None),
        meddle=other(_file("docs/guide.md"), OF_OTHERS),
    ),
    Row(
        "contents.delete sha",
        [
            {
                **REPO,
                "path": "docs/guide.md",
                "message": "Away with it",
                "sha": blob_sha(FILES[601]["docs/guide.md"]),
            }
        ],
        is_unseen=True,
        holds=_is_file("docs/guide.md", None),
        meddle=other(_file("docs/guide.md"), OF_OTHERS),
    ),
)


def _snapshot() -> Item:
    return {
        **REPO,
        "version": 3,
        "job": {"id": "44", "correlator": "nightly"},
        "sha": "a" * 40,
        "ref": "refs/heads/trunk",
        "detector": {"name": "finder", "version": "1.0", "url": "https://finder.example.test"},
        "scanned": "2026-11-24T00:00:00Z",
        "manifests": {},
    }


def _has_snapshot(look: Look, item: Item) -> bool:
    found = look.get("snapshot", 601, "nightly", "finder")
    return found is not None and found["version"] == 3


def _is_assigned(look: Look, item: Item) -> bool:
    return look.get("assigned", 701, ORGANIZATIONS[item["org"]]) is True


def _is_unassigned(look: Look, item: Item) -> bool:
    return not _is_assigned(look, item)


def _of_organization(effect: Effect, item: Item) -> bool:
    return effect.key == ("assigned", 701, ORGANIZATIONS[item["org"]])


def _assigned_at_first(*logins: str) -> Callable[[State, float], None]:
    def prepare(state: State, at: float) -> None:
        for login in logins:
            state.set(("assigned", 701, ORGANIZATIONS[login]), True, at)

    return prepare


ORBIT = {**TEAM, "org": "orbit"}
LOGIN = "nova-labs"


def _has_organization(look: Look, item: Item) -> bool:
    return look.get("login", item["login"].lower()) is not None


def _is_renamed(look: Look, item: Item) -> bool:
    return bool(look.get("login", item["login"].lower()) == ORG)


ORGANIZATION_ROWS = (
    Row("snapshot.create", [_snapshot()], holds=_has_snapshot, names_itself=False, is_blind=True),
    Row(
        "organization.create",
        [{"login": LOGIN, "admin": "boss", "profile_name": " The  Labs"}],
        holds=_has_organization,
        names_itself=True,
    ),
    Row(
        "organization.rename",
        [{"org": "acme", "login": "acme-new"}],
        holds=_is_renamed,
        names_itself=False,
    ),
    Row(
        "organization.rename wait",
        [{"org": "acme", "login": "acme-new", "wait": True}],
        holds=_is_renamed,
        names_itself=False,
    ),
    Row(
        "team-organization.add",
        [{**TEAM, "organization_slugs": ["acme", "orbit"]}],
        names_itself=False,
        holds=lambda look, item: _is_assigned(look, ORBIT),
        meddle=other(("assigned", 701, ORGANIZATIONS["nova"]), True),
    ),
    Row(
        "team-organization.remove",
        [{**TEAM, "organization_slugs": ["acme"]}],
        is_list=True,
        names_itself=False,
        holds=lambda look, item: not _is_assigned(look, {"org": "acme"}),
        proofs=(204,),
        meddle=other(("assigned", 701, ORGANIZATIONS["nova"]), True),
    ),
    Row("team-organization.assign", [ORBIT], holds=_is_assigned),
    Row(
        "team-organization.assign together",
        [{**TEAM, "org": "orbit"}, {**TEAM, "org": "nova"}, {**TEAM, "org": "acme"}],
        names_itself=False,
        holds=_is_assigned,
        belongs=_of_organization,
    ),
    Row("team-organization.unassign", [{**TEAM, "org": "acme"}], holds=_is_unassigned, proofs=(204,)),
    Row(
        "team-organization.unassign together",
        [{**TEAM, "org": "orbit"}, {**TEAM, "org": "nova"}, {**TEAM, "org": "acme"}],
        is_list=True,
        names_itself=False,
        holds=_is_unassigned,
        belongs=_of_organization,
        proofs=(204,),
        prepare=_assigned_at_first("orbit", "nova"),
    ),
)

CORP_OWNER, ACME_OWNER = ("enterprise", "corp"), ("organization", ORG)
CONFIGURATION = ("configuration", ACME_OWNER, 801)
LINK = "https://Help.Example.TEST:443/secrets"


def _has_configuration(look: Look, item: Item) -> bool:
    return any(
        " ".join(each["name"].split()) == "Strict rules" and each["secret_scanning"] == "enabled"
        for _, each in look.all("configuration", CORP_OWNER)
    )


def _is_attached(number: int) -> Callable[[Look, Item], bool]:
    return lambda look, item: look.get("attached", ORG, number) == 801


def _is_updated(look: Look, item: Item) -> bool:
    found = look.get(*CONFIGURATION)
    return (
        found is not None
        and found["secret_scanning"] == "enabled"
        and found["description"].strip() == "Look for secrets"
    )


def _setting(name: str, value: Any) -> Callable[[Look, Item], bool]:
    return lambda look, item: look.get("security", "corp")[name] == value


CONFIGURATION_ROWS = (
    Row(
        "enterprise-configuration.create",
        [{**CORP, "name": " Strict  rules", "secret_scanning": "enabled", "description": "For  all "}],
        holds=_has_configuration,
    ),
    Row(
        "organization-configuration.update",
        [{**ACME, "configuration_id": 801, "secret_scanning": "enabled", "description": "Look for secrets "}],
        holds=_is_updated,
        meddle=merged(CONFIGURATION, secret_scanning="not_set"),
    ),
    Row(
        "organization-configuration.delete",
        [{**ACME, "configuration_id": 801}],
        holds=lambda look, item: look.get(*CONFIGURATION) is None,
        proofs=(204,),
    ),
    Row(
        "organization-configuration.attach",
        [{**ACME, "configuration_id": 801, "scope": "selected", "selected_repository_ids": [601]}],
        holds=_is_attached(601),
        proofs=(202,),
        is_empty_elsewhere=True,
    ),
    Row(
        "organization-configuration.attach wait",
        [{**ACME, "configuration_id": 801, "scope": "selected", "selected_repository_ids": [601], "wait": True}],
        holds=_is_attached(601),
        is_empty_elsewhere=True,
    ),
    Row(
        "organization-configuration.attach all",
        [{**ACME, "configuration_id": 801, "scope": "all"}],
        holds=_is_attached(601),
        proofs=(202,),
        is_blind=True,
    ),
    Row(
        "organization-configuration.set-default",
        [{**ACME, "configuration_id": 801, "default_for_new_repos": "private_and_internal"}],
        holds=lambda look, item: look.get("default", ACME_OWNER, 801) == "private_and_internal",
        is_blind=True,
    ),
    Row(
        "enterprise-security.update",
        [{**CORP, "secret_scanning_enabled_for_new_repositories": True}],
        names_itself=False,
        holds=_setting("secret_scanning_enabled_for_new_repositories", True),
        proofs=(204,),
        meddle=merged(("security", "corp"), secret_scanning_push_protection_enabled_for_new_repositories=True),
    ),
    Row(
        "enterprise-security.update wait",
        [{**CORP, "secret_scanning_enabled_for_new_repositories": True, "wait": True}],
        names_itself=False,
        holds=_setting("secret_scanning_enabled_for_new_repositories", True),
        meddle=merged(("security", "corp"), secret_scanning_push_protection_enabled_for_new_repositories=True),
    ),
    Row(
        "enterprise-security.update link",
        [{**CORP, "secret_scanning_push_protection_custom_link": LINK}],
        names_itself=False,
        holds=lambda look, item: (
            look.get("security", "corp")["secret_scanning_push_protection_custom_link"] is not None
        ),
        proofs=(204,),
        is_blind=True,
    ),
    Row(
        "enterprise-security.enable",
        [{**CORP, "security_product": "secret_scanning", "enablement": "enable_all"}],
        holds=lambda look, item: look.get("product", "corp", "secret_scanning") == "enable_all",
        proofs=(204,),
        is_blind=True,
    ),
)


SETTING_ROWS: tuple[Row, ...] = (*FILE_ROWS, *ORGANIZATION_ROWS, *CONFIGURATION_ROWS)
