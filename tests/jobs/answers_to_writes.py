"""What the write of every operation is answered with when all is well, and answers that prove nothing.

Each row has an operation, an item, the answers to what is read before the write, the statuses that the specification
shows for it, the right body (None: it shows none, so that the status is the proof), and bodies of the right shape that
speak of something else.
"""

import base64
from typing import Any, NamedTuple

from bulk.model import Reply
from bulk_jobs.shared.files import blobs
from tests.jobs import answers
from tests.jobs.driver import reply

CONTENT = b"* @acme-eng/owners\n"
PUT = {
    **answers.REPOSITORY,
    "path": "CODEOWNERS",
    "message": "Add CODEOWNERS",
    "content": base64.b64encode(CONTENT).decode(),
}
COMMIT = {
    "message": "Add CODEOWNERS\n\nSigned-off-by: Mona",
    "sha": "c" * 40,
    "url": f"{answers.API}/repos/acme-eng/hello-world/git/commits/{'c' * 40}",
}
WRITTEN = {"content": {"path": "CODEOWNERS", "sha": blobs.blob_sha(CONTENT)}, "commit": COMMIT}
DELETED = {"content": None, "commit": COMMIT}
FOREIGN_COMMIT = {
    "message": "Add CODEOWNERS\n\nSigned-off-by: Mona",
    "sha": "c" * 40,
    "url": f"{answers.API}/repos/acme-eng/other/git/commits/{'c' * 40}",
}
SNAPSHOT = {
    **answers.REPOSITORY,
    "version": 0,
    "job": {"id": "5622", "correlator": "build"},
    "sha": "0" * 40,
    "ref": "refs/heads/main",
    "detector": {"name": "acme", "version": "1", "url": "https://example.com"},
    "scanned": "2026-11-21T08:00:00Z",
}
CONDITIONS = {"ref_name": {"include": ["~ALL"]}, "repository_name": {"include": ["~ALL"]}}
RULESET = {"org": "acme-eng", "name": "Protect main", "enforcement": "active", "conditions": CONDITIONS}
URL = "https://hooks.example.com/bulk"
NEW_HOOK = {
    "org": "acme-eng",
    "config": {"url": URL, "content_type": "json", "insecure_ssl": "0"},
    "events": ["push", "fork"],
    "active": True,
}
MADE_HOOK = {
    **answers.HOOK,
    "config": {"url": "HTTPS://Hooks.example.com:443/bulk/", "content_type": "JSON", "insecure_ssl": 0},
    "events": ["ping", "Fork", "push"],
}
ODD_CONFIGS = ({"url": "https://hooks.example.com/other"}, {"content_type": "form"}, {"insecure_ssl": "1"})
OTHER_HOOK = {**answers.HOOK, "id": 8, "config": {"url": "https://hooks.example.com/other"}}
CHANGED_HOOK = {"org": "acme-eng", "hook_id": 7, "config": {"url": URL, "secret": "s3cret"}, "events": ["push"]}
ONE = {**answers.TEAM, "org": "acme-eng"}
DEFAULT = {"default_for_new_repos": "all", "configuration": answers.CONFIGURATION}
CONFIGURED = {"org": "acme-eng", "configuration_id": 2001}
OFF = {"secret_scanning_enabled_for_new_repositories": False}
WHEN = "2026-11-21T08:00:00Z"
ABSENT, NONE = reply(404), reply(body=[])


class Write(NamedTuple):
    """A row."""

    operation: str
    item: dict[str, Any]
    before: tuple[Reply, ...]
    statuses: tuple[int, ...]
    right: Any = None
    wrong: tuple[Any, ...] = ()


WRITES = (
    Write(
        "contents.put",
        PUT,
        (ABSENT,),
        (200, 201),
        WRITTEN,
        (
            {"content": WRITTEN["content"]},
            {"content": WRITTEN["content"], "commit": {}},
            {"content": None, "commit": COMMIT},
            {"content": {"path": "CODEOWNERS"}, "commit": COMMIT},
            {"content": {"sha": blobs.blob_sha(CONTENT)}, "commit": COMMIT},
            {"content": {"path": "CODEOWNERS", "sha": "0" * 40}, "commit": COMMIT},
            {"content": {"path": "README.md", "sha": blobs.blob_sha(CONTENT)}, "commit": COMMIT},
            {"content": WRITTEN["content"], "commit": FOREIGN_COMMIT},
            {"content": WRITTEN["content"], "commit": {**COMMIT, "message": "Add an owner"}},
            [],
        ),
    ),
    Write(
        "contents.delete",
        {**answers.REPOSITORY, "path": "old", "message": " Add  CODEOWNERS\n", "sha": "a" * 40},
        (),
        (200,),
        DELETED,
        (
            *({"commit": COMMIT}, {"content": None}, WRITTEN, {"content": None, "commit": FOREIGN_COMMIT}, []),
            {"content": None, "commit": {**COMMIT, "message": "Delete another"}},
        ),
    ),
    Write(
        "snapshot.create",
        SNAPSHOT,
        (),
        (201,),
        {"id": 1, "created_at": WHEN, "message": "m", "result": "SUCCESS"},
        ({"id": 1}, {"result": "SUCCESS"}, {"id": True, "result": "SUCCESS"}, {"id": 1, "result": None}, []),
    ),
    Write(
        "organization.create",
        {"login": "acme-eng", "admin": "octoadmin"},
        (ABSENT,),
        (201,),
        answers.ORGANIZATION,
        ({"login": "acme", "id": 101}, {"login": "acme-eng"}, {"id": 101}, {"login": "acme-eng", "id": "x"}, []),
    ),
    Write(
        "organization.rename",
        {"org": "acme-labs", "login": "acme-research"},
        (ABSENT, NONE),
        (202,),
        {"message": "Job queued", "url": f"{answers.API}/orgs/Acme-Research"},
        ({"message": "m", "url": f"{answers.API}/orgs/other"}, {"url": "x"}, {"message": "m", "url": None}, []),
    ),
    Write(
        "organization-ruleset.create",
        RULESET,
        (reply(body=[{**answers.RULESET, "id": 8, "name": "Other"}]),),
        (200, 201),
        {**answers.RULESET, "name": " PROTECT main", "target": "branch"},
        (
            {**answers.RULESET, "id": 8},
            {name: value for name, value in answers.RULESET.items() if name != "enforcement"},
            {**answers.RULESET, "name": "Other"},
            {**answers.RULESET, "enforcement": "disabled"},
            {**answers.RULESET, "target": "tag"},
            {**answers.RULESET, "source": "acme"},
            {"id": 7},
            {"name": "Protect main"},
            [],
        ),
    ),
    Write(
        "enterprise-configuration.create",
        {"enterprise": "acme", "name": "Strict", "description": " For all ", "secret_scanning": "enabled"},
        (reply(body=[{**answers.OF_ENTERPRISE, "id": 1002, "name": "Lax"}]),),
        (201,),
        {**answers.OF_ENTERPRISE, "description": "For all", "secret_scanning": "enabled", "enforcement": "enforced"},
        (
            answers.OF_ENTERPRISE,
            {**answers.OF_ENTERPRISE, "description": "For all", "secret_scanning": "disabled"},
            {**answers.OF_ENTERPRISE, "description": "For some", "secret_scanning": "enabled"},
            {**answers.OF_ENTERPRISE, "description": "For all"},
            {**answers.OF_ENTERPRISE, "id": 1002, "description": "For all", "secret_scanning": "enabled"},
            {**answers.OF_ENTERPRISE, "name": "Lax"},
            {"name": "Strict"},
            {"id": 1001},
            [],
        ),
    ),
    Write(
        "organization-configuration.update",
        {**CONFIGURED, "name": "Strict", "secret_scanning": "enabled"},
        (reply(body={**answers.CONFIGURATION, "secret_scanning": "disabled"}),),
        (200,),
        {**answers.CONFIGURATION, "secret_scanning": "enabled"},
        (
            {**answers.CONFIGURATION, "id": 2002},
            {**answers.CONFIGURATION, "name": "Lax"},
            {**answers.CONFIGURATION, "secret_scanning": "disabled"},
            answers.CONFIGURATION,
            [],
        ),
    ),
    Write(
        "organization-configuration.update",
        {**CONFIGURED, "name": "Strict"},
        (reply(body=answers.CONFIGURATION),),
        (204,),
    ),
    Write(
        "organization-configuration.set-default",
        {**CONFIGURED, "default_for_new_repos": "all"},
        (),
        (200,),
        DEFAULT,
        (
            {**DEFAULT, "default_for_new_repos": "none"},
            {**DEFAULT, "configuration": {"id": 2002}},
            {"default_for_new_repos": "all"},
            [],
        ),
    ),
    Write("organization-configuration.delete", CONFIGURED, (reply(body=answers.CONFIGURATION),), (204,)),
    Write("organization-configuration.attach", {**CONFIGURED, "scope": "all"}, (), (202,)),
    Write("enterprise-security.update", {"enterprise": "acme", **answers.SETTINGS}, (reply(body=OFF),), (204,)),
    Write(
        "enterprise-security.enable",
        {"enterprise": "acme", "security_product": "secret_scanning", "enablement": "enable_all"},
        (),
        (204,),
    ),
    Write(
        "webhook.create",
        NEW_HOOK,
        (reply(body=[OTHER_HOOK]),),
        (201,),
        MADE_HOOK,
        (
            {**MADE_HOOK, "id": 8},
            {**MADE_HOOK, "events": ["push"]},
            {**MADE_HOOK, "active": False},
            *({**MADE_HOOK, "config": {**MADE_HOOK["config"], **other}} for other in ODD_CONFIGS),
            *({name: MADE_HOOK[name] for name in MADE_HOOK if name != lacking} for lacking in ("events", "active")),
            {**MADE_HOOK, "url": f"{answers.API}/orgs/acme/hooks/7"},
            {"config": {"url": URL}},
            {"id": 7, "config": {}},
            [],
        ),
    ),
    Write(
        "webhook.update",
        CHANGED_HOOK,
        (reply(body=answers.HOOK),),
        (200,),
        answers.HOOK,
        (
            {**answers.HOOK, "id": 8},
            {**answers.HOOK, "events": ["issues", "fork"]},
            {**answers.HOOK, "config": {"url": "https://hooks.example.com/other"}},
            {"id": 7},
            [],
        ),
    ),
    Write(
        "webhook.update-config",
        {"org": "acme-eng", "hook_id": 7, "url": URL, "content_type": "json", "secret": "s3cret"},
        (reply(body=answers.HOOK["config"]),),
        (200,),
        answers.HOOK["config"],
        ({"url": "https://hooks.example.com/other", "content_type": "json"}, {"url": URL}, []),
    ),
    Write("webhook.delete", {"org": "acme-eng", "hook_id": 7}, (reply(body=answers.HOOK),), (204,)),
    Write(
        "team-organization.assign",
        ONE,
        (ABSENT, ABSENT),
        (200, 201),
        answers.ORGANIZATION,
        ({"login": "acme", "id": 1}, {"id": 101}, []),
    ),
    Write("team-organization.unassign", ONE, (reply(body=answers.ORGANIZATION),), (204,)),
    Write(
        "team-organization.add",
        {**answers.TEAM, "organization_slugs": ["acme-eng"]},
        (NONE, NONE, ABSENT),
        (200,),
        [answers.ORGANIZATION],
        ([{}], [{"id": 101}]),
    ),
    Write(
        "team-organization.remove",
        {**answers.TEAM, "organization_slugs": ["acme-eng"]},
        (reply(body=[answers.ORGANIZATION]),),
        (204,),
    ),
    Write("notification.mark-read", {"last_read_at": WHEN}, (), (202,), {"message": "accepted"}, ({"message": 5}, [])),
    Write("notification.mark-read", {"last_read_at": WHEN}, (), (205,)),
    Write("thread.mark-read", {"thread_id": 7, "last_read_at": WHEN}, (reply(body=answers.THREAD),), (205,)),
)
