"""What the second platform has at first: one of everything, and of everything another one, its twin.

`TWINS` leads from ours to the twin; an answer that belongs to another item is the twin's.
"""

from typing import Any

from tests.hostile.areas.configurations import DEFAULTS
from tests.hostile.http.turn import stamp
from tests.hostile.store.state import State

BEGAN = 1_700_000_000.0
"""When everything was made (seconds since 1970)."""

TWINS: dict[str, str] = {
    "acme": "zeta",
    "acme-new": "zeta",
    "orbit": "zeta",
    "nova": "zeta",
    "api": "web",
    "corp": "zorp",
    "ent:security": "ent:other",
    "CODEOWNERS": "OWNERS",
    "docs": "notes",
    "801": "811",
    "802": "812",
    "803": "812",
    "901": "902",
    "31": "41",
    "1001": "1002",
    "1101": "1102",
}
"""Segments of paths: ours, and the twin's."""

ORGANIZATIONS = {"acme": 501, "zeta": 502, "orbit": 503, "nova": 504}
REPOSITORIES = {("acme", "api"): 601, ("zeta", "web"): 602, ("acme", "site"): 603}
FILES: dict[int, dict[str, bytes]] = {
    601: {
        "README.md": b"# The interface\n",
        "CODEOWNERS": b"* @boss\n",
        "docs/guide.md": b"Begin here.\n",
        "docs/end.md": b"End here.\n",
    },
    602: {"README.rst": b"The web\n=======\n", "OWNERS": b"* @nobody\n", "notes/guide.md": b"Not here.\n"},
    603: {"README.md": b"# A site\n"},
}
ENTERPRISES = {"corp": 1, "zorp": 2}
HISTORY_MOMENTS = 3


def seeded(first_id: int = 7_000_000_025) -> State:
    """The state of a new platform; `first_id`: of the first thing that will be made there."""
    state = State(first_id)

    def put(value: Any, *key: Any) -> None:
        state.set(key, value, BEGAN)

    for login, number in ORGANIZATIONS.items():
        put(number, "login", login)
        put(
            {"id": number, "login": login, "name": login.title(), "description": f"All of {login}"},
            "organization",
            number,
        )
    for (owner, name), number in REPOSITORIES.items():
        repo = {
            "id": number,
            "name": name,
            "full_name": f"{owner}/{name}",
            "default_branch": "trunk",
            "organization": ORGANIZATIONS[owner],
            "private": name == "site",
        }
        put(repo, "repository", owner, name)
        for path, data in FILES[number].items():
            put(data, "file", number, "trunk", path)
    put(701, "team", "corp", "ent:security")
    put(702, "team", "zorp", "ent:other")
    put(True, "assigned", 701, ORGANIZATIONS["acme"])
    put(True, "assigned", 702, ORGANIZATIONS["zeta"])
    _enterprises(put)
    _organizations(put)
    _threads(put)
    return state


def _enterprises(put: Any) -> None:
    for slug, number in ENTERPRISES.items():
        mine = number == 1
        put(number, "enterprise", slug)
        configurations = (802, 803) if mine else (812,)
        for each in configurations:
            put(_configuration(each, "enterprise", f"Standard {each}"), "configuration", ("enterprise", slug), each)
        put("all" if mine else "public", "default", ("enterprise", slug), configurations[0])
        settings = {
            "advanced_security_enabled_for_new_repositories": not mine,
            "advanced_security_enabled_new_user_namespace_repos": False,
            "dependabot_alerts_enabled_for_new_repositories": not mine,
            "secret_scanning_enabled_for_new_repositories": not mine,
            "secret_scanning_push_protection_enabled_for_new_repositories": False,
            "secret_scanning_non_provider_patterns_enabled_for_new_repositories": False,
            "secret_scanning_push_protection_custom_link": None if mine else "https://other.example.test/help",
        }
        put(settings, "security", slug)
        ruleset, version = (901, 31) if mine else (902, 41)
        put([_version(slug, ruleset, version + each) for each in range(HISTORY_MOMENTS)], "history", slug, ruleset)
        committers = {
            "total_advanced_security_committers": 2 if mine else 5,
            "total_count": 1,
            "maximum_advanced_security_committers": 50,
            "purchased_advanced_security_committers": 40,
            "repositories": [
                {
                    "name": "acme/api" if mine else "zeta/web",
                    "advanced_security_committers": 2 if mine else 5,
                    "advanced_security_committers_breakdown": [
                        {
                            "user_login": "boss",
                            "last_pushed_date": "2026-10-01",
                            "last_pushed_email": "boss@example.test",
                        }
                    ],
                }
            ],
        }
        put(committers, "committers", slug)
    license_ = {
        "seats": 500,
        "seats_used": 123,
        "seats_available": 377,
        "kind": "standard",
        "days_until_expiration": 90,
        "expire_at": "2027-02-20T00:00:00Z",
    }
    put(license_, "license")


def _configuration(number: int, target: str, name: str) -> dict[str, Any]:
    return {
        **DEFAULTS,
        "id": number,
        "target_type": target,
        "name": name,
        "description": f"What {name} is for",
        "created_at": stamp(BEGAN),
        "updated_at": stamp(BEGAN),
    }


def _version(slug: str, ruleset: int, version: int) -> dict[str, Any]:
    state = {
        "id": ruleset,
        "name": f"Rules of {slug}",
        "target": "branch",
        "source_type": "Enterprise",
        "source": slug,
        "enforcement": "active",
        "conditions": {"organization_name": {"include": ["~ALL"]}, "repository_name": {"include": ["~ALL"]}},
        "rules": [{"type": "repository_delete"}],
    }
    actor = {"id": 77, "type": "User"}
    return {"version_id": version, "actor": actor, "updated_at": stamp(BEGAN + version), "state": state}


def _organizations(put: Any) -> None:
    for login, configuration, hook in (("acme", 801, 1001), ("zeta", 811, 1002)):
        org = ORGANIZATIONS[login]
        put(
            _configuration(configuration, "organization", f"Of {login}"),
            "configuration",
            ("organization", org),
            configuration,
        )
        kept = {
            "id": hook,
            "name": "web",
            "active": True,
            "events": ["push", "issues"],
            "config": {
                "url": f"https://hooks.example.test/{login}",
                "content_type": "json",
                "insecure_ssl": "0",
                "secret": "old-secret",
            },
            "created_at": stamp(BEGAN),
            "updated_at": stamp(BEGAN),
        }
        put(kept, "hook", org, hook)
        delivery = {"id": hook * 10, "status": "OK", "status_code": 200, "event": "push", "delivered_at": stamp(BEGAN)}
        put([delivery], "deliveries", hook)
        rules = {
            "id": hook + 900,
            "name": f"Old rules of {login}",
            "target": "branch",
            "enforcement": "disabled",
            "node_id": f"RRS_{hook}",
            "source_type": "Organization",
            "source": login,
            "rules": [],
            "_links": {"self": {"href": "https://git.example.test/r"}, "html": None},
            "created_at": stamp(BEGAN),
            "updated_at": stamp(BEGAN),
        }
        put(rules, "ruleset", org, hook + 900)
    put(801, "attached", ORGANIZATIONS["acme"], 603)


def _threads(put: Any) -> None:
    for number, repository in ((1101, "acme/api"), (1102, "zeta/web"), (1103, "acme/site")):
        owner, name = repository.split("/")
        thread = {
            "id": str(number),
            "repository": {
                "id": REPOSITORIES[owner, name],
                "node_id": f"R_{number}",
                "name": name,
                "full_name": repository,
                "owner": {"login": owner, "id": ORGANIZATIONS[owner], "type": "Organization", "site_admin": False},
                "private": False,
                "html_url": f"https://git.example.test/{repository}",
                "description": None,
                "fork": False,
                "url": f"https://git.example.test/api/v3/repos/{repository}",
            },
            "subject": {
                "title": f"Subject {number}",
                "url": f"https://git.example.test/api/v3/repos/{repository}/issues/1",
                "latest_comment_url": None,
                "type": "Issue",
            },
            "reason": "mention",
            "unread": True,
            "updated_at": BEGAN + number,
            "last_read_at": None,
        }
        put(thread, "thread", str(number))
