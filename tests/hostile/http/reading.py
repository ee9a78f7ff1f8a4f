"""The rows of operations that read: each knows what a right result must hold."""

import base64
from collections.abc import Callable
from typing import Any

from tests.hostile.areas.contents import blob_sha
from tests.hostile.rows import Row
from tests.hostile.store.seeds import FILES

OWNERS, README = FILES[601]["CODEOWNERS"], FILES[601]["README.md"]


def _file(path: str, data: bytes) -> Callable[[Any], bool]:
    def is_right(result: Any) -> bool:
        return (
            isinstance(result, dict)
            and result.get("path") == path
            and result.get("sha") == blob_sha(data)
            and base64.b64decode(result.get("content", "")) == data
        )

    return is_right


def _fields(**wanted: Any) -> Callable[[Any], bool]:
    return lambda result: isinstance(result, dict) and all(result.get(name) == wanted[name] for name in wanted)


def _each(name: str, wanted: list[Any]) -> Callable[[Any], bool]:
    """A list whose entries, in any order, have these values of a field."""

    def is_right(result: Any) -> bool:
        if not isinstance(result, list) or not all(isinstance(each, dict) for each in result):
            return False
        return sorted(str(each.get(name)) for each in result) == sorted(map(str, wanted))

    return is_right


def _config(result: Any) -> bool:
    return isinstance(result, dict) and result.get("url") == "https://hooks.example.test/acme"


REPO = {"owner": "acme", "repo": "api"}
CORP, ACME = {"enterprise": "corp"}, {"org": "acme"}
TEAM = {**CORP, "enterprise-team": "ent:security"}
HOOK = {**ACME, "hook_id": 1001}

READ_ROWS: tuple[Row, ...] = (
    Row("readme.get", [REPO], is_right=_file("README.md", README)),
    Row(
        "readme.get raw",
        [{**REPO, "media_type": "raw"}],
        is_right=_fields(size=len(README)),
        names_itself=False,
        has_any_body=True,
    ),
    Row("contents.get", [{**REPO, "path": "CODEOWNERS"}], is_right=_file("CODEOWNERS", OWNERS)),
    Row(
        "contents.get directory",
        [{**REPO, "path": "docs"}],
        is_right=_each("path", ["docs/end.md", "docs/guide.md"]),
        is_list=True,
    ),
    Row(
        "contents.get raw",
        [{**REPO, "path": "CODEOWNERS", "media_type": "raw"}],
        is_right=_fields(size=len(OWNERS)),
        names_itself=False,
        has_any_body=True,
    ),
    Row("team-organization.list", [TEAM], is_right=_each("login", ["acme"]), is_list=True, names_itself=False),
    Row("team-organization.get", [{**TEAM, "org": "acme"}], is_right=_fields(id=501, login="acme")),
    Row("enterprise-configuration.list", [CORP], is_right=_each("id", [802, 803]), is_list=True, names_itself=False),
    Row(
        "enterprise-configuration.defaults",
        [CORP],
        is_right=_each("default_for_new_repos", ["all"]),
        is_list=True,
        names_itself=False,
    ),
    Row("enterprise-configuration.get", [{**CORP, "configuration_id": 802}], is_right=_fields(id=802)),
    Row("organization-configuration.get", [{**ACME, "configuration_id": 801}], is_right=_fields(id=801)),
    Row(
        "organization-configuration.repositories",
        [{**ACME, "configuration_id": 801}],
        is_right=lambda result: isinstance(result, list) and len(result) == 1 and "acme/site" in str(result),
        is_list=True,
        names_itself=False,
    ),
    Row(
        "enterprise-security.get",
        [CORP],
        is_right=_fields(dependabot_alerts_enabled_for_new_repositories=False),
        names_itself=False,
    ),
    Row(
        "enterprise-ruleset.history",
        [{**CORP, "ruleset_id": 901}],
        is_right=_each("version_id", [31, 32, 33]),
        is_list=True,
        names_itself=False,
    ),
    Row(
        "enterprise-ruleset.version",
        [{**CORP, "ruleset_id": 901, "version_id": 31}],
        is_right=_fields(version_id=31),
    ),
    Row("organization-ruleset.list", [ACME], is_right=_each("source", ["acme"]), is_list=True, names_itself=False),
    Row("license.get", [{}], is_right=_fields(seats=500), names_itself=False),
    Row("committers.get", [CORP], is_right=_fields(total_advanced_security_committers=2), names_itself=False),
    Row("webhook.list", [ACME], is_right=_each("id", [1001]), is_list=True, names_itself=False),
    Row("webhook.get", [HOOK], is_right=_fields(id=1001)),
    Row("webhook.get-config", [HOOK], is_right=_config, names_itself=False),
    Row("webhook.deliveries", [HOOK], is_right=_each("id", [10010]), is_list=True, names_itself=False),
    Row(
        "notification.list",
        [{"all": True}],
        is_right=_each("id", ["1103", "1102", "1101"]),
        is_list=True,
        names_itself=False,
    ),
    Row("thread.get", [{"thread_id": 1101}], is_right=_fields(id="1101")),
    Row(
        "rate-limit.get",
        [{}],
        is_right=lambda result: isinstance(result, dict) and "core" in result.get("resources", result),
        names_itself=False,
    ),
)
