"""What every read of the specification is answered with when all is well, and what other things pass for answers.

`READS` has each operation that reads, with an item, the answer to its first request, and answers of the right shape
that speak of something else. `NEVER` are bodies that no read of an object or of a list may end well with.
"""

from typing import Any

from bulk_jobs.shared.files import blobs

API = "https://code.example.com/api/v3"
NEVER: tuple[Any, ...] = (
    {},
    {"message": "x"},
    {"status": "ok"},
    {"id": None},
    None,
    "ok",
    "<html>welcome</html>",
    5,
    True,
    [1],
    [None],
    ["x"],
    [[]],
)
"""What gateways, caches and half a platform answer with 200."""

REPOSITORY = {"owner": "acme-eng", "repo": "hello-world"}
FILE = {
    "type": "file",
    "encoding": "base64",
    "size": 5,
    "name": "README.md",
    "path": "docs/README.md",
    "sha": blobs.blob_sha(b"hello"),
    "content": "aGVs\nbG8=\n",
    "url": f"{API}/repos/Acme-Eng/hello-world/contents/docs/README.md?ref=main",
}
CUT = (
    {**FILE, "content": "aGVs\n"},
    {**FILE, "size": 6},
    {**FILE, "content": "%%%"},
    {**FILE, "content": None},
    {**FILE, "encoding": "utf-8"},
    {**FILE, "encoding": None, "content": None},
    {**FILE, "type": "message"},
    {**FILE, "type": None},
    {**FILE, "url": f"{API}/repos/acme-eng/other/contents/docs/README.md"},
    {**FILE, "url": f"{API}/repos/acme/hello-world/contents/docs/README.md"},
)
"""Files that are not whole, or of another repository."""

ENTRY = {"type": "file", "name": "a", "path": "docs/a", "sha": "0" * 40, "size": 1}
HOOK: dict[str, Any] = {
    "id": 7,
    "name": "web",
    "events": ["push"],
    "active": True,
    "config": {"url": "https://hooks.example.com/bulk", "content_type": "json", "insecure_ssl": "0"},
    "url": f"{API}/orgs/acme-eng/hooks/7",
}
CONFIGURATION = {"id": 2001, "name": "Strict", "url": f"{API}/orgs/ACME-eng/code-security/configurations/2001"}
OF_ENTERPRISE = {"id": 1001, "name": "Strict", "url": f"{API}/enterprises/acme/code-security/configurations/1001"}
RULESET = {
    "id": 7,
    "name": "Protect main",
    "source_type": "Organization",
    "source": "Acme-Eng",
    "enforcement": "active",
}
THREAD = {"id": "7", "unread": True, "reason": "mention", "updated_at": "2026-11-21T08:00:00Z"}
SETTINGS = {"secret_scanning_enabled_for_new_repositories": True}
CORE = {"limit": 5000, "used": 1, "remaining": 4999, "reset": 1_763_712_000}
COMMITTERS = {"total_advanced_security_committers": 3, "total_count": 1, "repositories": [{"name": "a/b"}]}
TEAM = {"enterprise": "acme", "enterprise-team": "ent:platform"}
ORGANIZATION = {"login": "Acme-Eng", "id": 101}

ODD: tuple[dict[str, Any], ...] = ({"type": 1}, {"name": 5}, {"name": []}, {"name": None})

_CONFIGURED = {"org": "acme-eng", "configuration_id": 2001}
_HOOKED = {"org": "acme-eng", "hook_id": 7}
_AT = {**REPOSITORY, "path": "docs/README.md"}

READS: tuple[tuple[str, dict[str, Any], Any, tuple[Any, ...]], ...] = (
    ("readme.get", REPOSITORY, FILE, (*CUT, [])),
    ("contents.get", _AT, FILE, (*CUT, {**FILE, "path": "docs/other.md"}, [{}], [{**ENTRY, "path": "other/a"}])),
    ("contents.get", {**_AT, "media_type": "object"}, FILE, CUT),
    (
        "contents.get",
        {**REPOSITORY, "path": "docs"},
        [ENTRY],
        ([{**ENTRY, "path": "a"}], *([{**ENTRY, **odd}] for odd in ODD)),
    ),
    (
        "contents.get",
        {**REPOSITORY, "path": "docs", "media_type": "object"},
        {"type": "dir", "path": "docs", "entries": [ENTRY]},
        ({"type": "dir", "path": "doc", "entries": []}, {"entries": [{}]}, {"type": "dir"}),
    ),
    ("team-organization.list", TEAM, [ORGANIZATION], ([{}], [{"id": 1}], [{"login": 5}])),
    (
        "team-organization.get",
        {**TEAM, "org": "acme-eng"},
        ORGANIZATION,
        ({"login": "acme", "id": 101}, {"login": 101}, []),
    ),
    ("enterprise-configuration.list", {"enterprise": "acme"}, [OF_ENTERPRISE], ([{}], [{"id": "x", "name": "y"}])),
    (
        "enterprise-configuration.defaults",
        {"enterprise": "acme"},
        [{"default_for_new_repos": "all", "configuration": OF_ENTERPRISE}],
        ([{}], [OF_ENTERPRISE]),
    ),
    (
        "enterprise-configuration.get",
        {"enterprise": "acme", "configuration_id": 1001},
        OF_ENTERPRISE,
        (
            {**OF_ENTERPRISE, "id": 1002},
            {**OF_ENTERPRISE, "id": True},
            {"id": 1001},
            [],
            {**OF_ENTERPRISE, "url": f"{API}/enterprises/other/code-security/configurations/1001"},
        ),
    ),
    (
        "organization-configuration.get",
        _CONFIGURED,
        CONFIGURATION,
        (
            {**CONFIGURATION, "id": 2002},
            {"name": "Strict"},
            [],
            {**CONFIGURATION, "url": f"{API}/orgs/acme/code-security/configurations/2001"},
        ),
    ),
    ("organization-configuration.repositories", _CONFIGURED, [{"status": "attached", "repository": {"id": 1}}], ()),
    ("enterprise-security.get", {"enterprise": "acme"}, SETTINGS, ({"secret_scanning": True}, [])),
    ("enterprise-ruleset.history", {"enterprise": "acme", "ruleset_id": 3}, [{"version_id": 1}], ([{}],)),
    (
        "enterprise-ruleset.version",
        {"enterprise": "acme", "ruleset_id": 3, "version_id": 33},
        {"version_id": 33, "state": {"id": 3}},
        ({"version_id": 32, "state": {"id": 3}}, {"version_id": 33}, {"version_id": 33, "state": {"id": 4}}, []),
    ),
    (
        "organization-ruleset.list",
        {"org": "acme-eng"},
        [RULESET, {**RULESET, "source_type": "Enterprise", "source": "acme"}],
        ([{}], [{"id": 7}], [RULESET, {**RULESET, "source": "acme-ops"}]),
    ),
    ("license.get", {}, {"seats": 5, "seats_used": 1, "kind": "standard"}, ({"seats": 5}, {"seats": True}, [])),
    (
        "committers.get",
        {"enterprise": "acme"},
        COMMITTERS,
        ({**COMMITTERS, "repositories": [5]}, {"repositories": []}, []),
    ),
    ("webhook.list", {"org": "acme-eng"}, [HOOK], ([{}], [{"id": 7}], [{**HOOK, "url": f"{API}/orgs/acme/hooks/7"}])),
    ("webhook.get", _HOOKED, HOOK, ({**HOOK, "id": 8}, {"id": 7}, {**HOOK, "url": f"{API}/orgs/acme/hooks/7"}, [])),
    ("webhook.get-config", _HOOKED, HOOK["config"], ({"content_type": "json"}, {"url": None}, [])),
    ("webhook.deliveries", _HOOKED, [{"id": 1}], ()),
    ("notification.list", {}, [THREAD], ([{}],)),
    ("thread.get", {"thread_id": 7}, THREAD, ({**THREAD, "id": "8"}, {"id": "7"}, {**THREAD, "unread": "no"}, [])),
    (
        "rate-limit.get",
        {},
        {"resources": {"core": CORE}},
        ({"resources": {}}, {"resources": {"core": 1}}, {"rate": CORE}),
    ),
)
