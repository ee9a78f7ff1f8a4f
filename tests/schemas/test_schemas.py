"""The schemas themselves: none is missing, each guards its fields, and one that is wrong is caught."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from bulk.sandbox import Settings, running
from bulk.sandbox.areas.served import AREAS
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.observing import Observed
from bulk.sandbox.http.routes import Area, Route
from tests.schemas.asked import key
from tests.schemas.checker import Checker
from tests.schemas.table import ANYWHERE, BESIDE, ENDPOINTS
from tests.schemas.wrong import RATE_LIMIT, WRONG

ROUTES = {key(route.method, route.path): route for area in AREAS for route in area.routes}
CHECKER = Checker({**ENDPOINTS, **BESIDE})
JSON_HEADERS = {"Content-Type": "application/json; charset=utf-8"}
NEW = {"login": "acme-web", "admin": "octoadmin"}
HOOK = {"name": "web", "config": {"url": "http://127.0.0.1:9/x", "secret": "s3cret"}}
FILE = {"message": "x", "content": "eA=="}
RULESET = {
    "name": "x",
    "enforcement": "active",
    "bypass_actors": [{"actor_id": 1, "actor_type": "Team"}],
    "conditions": {
        "ref_name": {"include": ["~ALL"], "exclude": []},
        "repository_property": {"include": [{"name": "a", "property_values": ["b"]}]},
    },
    "rules": [
        {"type": "deletion"},
        {"type": "commit_message_pattern", "parameters": {"operator": "regex", "pattern": "x"}},
        {
            "type": "required_status_checks",
            "parameters": {
                "required_status_checks": [{"context": "ci"}],
                "strict_required_status_checks_policy": True,
            },
        },
    ],
}
SNAPSHOT = {
    "version": 0,
    "job": {"id": "1", "correlator": "c"},
    "sha": "a" * 40,
    "ref": "refs/heads/main",
    "detector": {"name": "d", "version": "1", "url": "https://example.com"},
    "scanned": "2026-11-21T08:00:00Z",
}
REVIEWER = {"reviewer_id": 1, "reviewer_type": "TEAM"}
BYPASS = {"secret_scanning_delegated_bypass_options": {"reviewers": [REVIEWER]}}
CALLS: list[tuple[str, str, Any]] = [
    ("GET", "/enterprises/acme/teams/ent:platform/organizations", None),
    ("GET", "/enterprises/acme/teams/ent:platform/organizations/acme-eng", None),
    ("GET", "/repos/acme-eng/hello-world/contents/README.md", None),
    ("GET", "/repos/acme-eng/hello-world/contents/", None),
    ("GET", "/repos/acme-eng/hello-world/contents/third_party", None),
    ("GET", "/repos/acme-eng/hello-world/contents/third_party/ext", None),
    ("GET", "/repos/acme-eng/hello-world/contents/docs/outside", None),
    ("GET", "/repos/acme-eng/hello-world/readme", None),
    ("PUT", "/repos/acme-eng/hello-world/contents/new.txt", FILE),
    ("GET", "/enterprises/acme/code-security/configurations", None),
    ("GET", "/enterprises/acme/code-security/configurations/defaults", None),
    ("PATCH", "/orgs/acme-eng/code-security/configurations/2001", BYPASS),
    ("GET", "/orgs/acme-eng/code-security/configurations/2001/repositories", None),
    ("GET", "/enterprises/acme/code_security_and_analysis", None),
    ("GET", "/enterprises/acme/rulesets/3001/history", None),
    ("GET", "/enterprises/acme/rulesets/3001/history/33", None),
    ("GET", "/orgs/acme-ops/rulesets", None),
    ("POST", "/orgs/acme-eng/rulesets", RULESET),
    ("GET", "/enterprise/settings/license", None),
    ("GET", "/enterprises/acme/settings/billing/advanced-security", None),
    ("POST", "/admin/organizations", NEW),
    ("PATCH", "/admin/organizations/acme-labs", {"login": "acme-research"}),
    ("POST", "/repos/acme-eng/hello-world/dependency-graph/snapshots", SNAPSHOT),
    ("POST", "/orgs/acme-eng/hooks", HOOK),
    ("GET", "/orgs/acme-ops/hooks/4001/deliveries", None),
    ("GET", "/notifications?all=true", None),
    ("GET", "/rate_limit", None),
    ("GET", "/orgs/missing/rulesets", None),
    ("POST", "/orgs/acme-eng/rulesets", {}),
    ("POST", "/admin/organizations", {"login": "a b", "admin": "octoadmin"}),
]
"""One successful answer of every shape, and refusals of both kinds."""


OPTIONAL = {
    # what there may be none of
    "code_scanning_default_setup_options null",
    "code_scanning_options null",
    "configuration.code_scanning_default_setup_options null",
    "configuration.code_scanning_options null",
    "secret_scanning_push_protection_custom_link null",
    "last_read_at null",
    "repository.description null",
    "owner.gravatar_id null",
    "action null",
    "installation_id null",
    "repository_id null",
    "throttled_at null",
    "bypass_actors.actor_id null",
    "verification.payload null",
    "verification.signature null",
    "verification.verified_at null",
    # directories can't be downloaded, and submodules of elsewhere have no links
    "_links.git null",
    "_links.html null",
    "download_url null",
    "git_url null",
    "html_url null",
    "submodule_git_url null",
    # what there need not be
    "status lacking",
    "errors lacking",
    "errors.message lacking",
    "resources.source_import lacking",
    "config.secret lacking",
    "conditions.ref_name lacking",
    "ref_name.exclude lacking",
    "ref_name.include lacking",
    "conditions.repository_property lacking",
    "repository_property.include lacking",
}
"""The last two names of a field, and what it can be without being wrong."""


class Asked:
    """A sandbox whose answers are kept, and a client of it."""

    def __init__(self, base_url: str, session: aiohttp.ClientSession, seen: list[Observed]) -> None:
        self._base_url, self._session, self.seen = base_url, session, seen

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> Observed:
        """What was observed of one request."""
        given = {"Authorization": "Bearer sbx-site-admin", "User-Agent": "tests", **headers}
        async with self._session.request(method, self._base_url + path, json=body, headers=given) as reply:
            await reply.read()
        return self.seen[-1]


@pytest.fixture
async def start() -> AsyncIterator[Any]:
    """Starts sandboxes that this test observes itself."""
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())

        async def begin(*areas: Area, **options: Any) -> Asked:
            seen: list[Observed] = []
            settings = Settings(**options)
            sandbox = await stack.enter_async_context(running(settings, areas=(*AREAS, *areas), observe=seen.append))
            return Asked(sandbox.base_url, session, seen)

        yield begin


def observed(name: str, status: int, body: object = None, *, version: str = "2022-11-28") -> Observed:
    """An answer of an endpoint, made up."""
    route = ROUTES[key(*name.split(" ", 1))]
    content = b"" if body is None else json.dumps(body).encode()
    headers = {} if body is None else JSON_HEADERS
    return Observed(route.method, route.path, route, version, "json", status, headers, content)


# -- the table is complete


def test_every_endpoint_has_a_schema() -> None:
    """The specification has 45 endpoints; each has a schema, is served, and nothing else is but where links lead."""
    assert len(ENDPOINTS) == 45
    named = {key(*name.split(" ", 1)) for name in ENDPOINTS}
    beside = {key(*name.split(" ", 1)) for name in BESIDE}
    assert set(ROUTES) == named | beside
    assert not named & beside


def test_every_endpoint_can_succeed() -> None:
    """Each has at least one status below 400, and 422 only where there is a body or a query to refuse."""
    for name, answers in {**ENDPOINTS, **BESIDE}.items():
        assert any(status < 400 for status in answers), name
        assert not set(answers) & set(ANYWHERE), name


# -- what is wrong is caught


async def test_every_field_is_guarded(start: Any) -> None:
    """In every answer, no field can be lacking, null or of another type, and none be added, unless it is optional."""
    platform = await start()
    spared: set[str] = set()
    for method, path, body in CALLS:
        seen = await platform.ask(method, path, body)
        assert CHECKER.fault(seen) is None, path
        whole = json.loads(seen.body)
        for place, changed in changes(whole):
            if CHECKER.fault(with_body(seen, changed)) is None:
                spared.add(place)
    assert spared == OPTIONAL


def with_body(seen: Observed, body: object) -> Observed:
    """The same answer with another body."""
    return Observed(
        seen.method,
        seen.path,
        seen.route,
        seen.version,
        seen.media,
        seen.status,
        seen.headers,
        json.dumps(body).encode(),
    )


def changes(value: Any) -> Iterator[tuple[str, Any]]:
    """(place, changed copy) for each way to break a JSON value: of each array, the first entry stands for all."""
    for place in places(value, ()):
        where = named(place)
        for how, replaced in (("lacking", ...), ("null", None), ("another type", {"no": "such"})):
            changed = copy.deepcopy(value)
            holder = changed
            for step in place[:-1]:
                holder = holder[step]
            if replaced is not ...:
                holder[place[-1]] = replaced
            elif isinstance(holder, dict):
                del holder[place[-1]]
            else:
                continue
            yield f"{where} {how}", changed
    for place in [(), *places(value, ())]:
        changed = copy.deepcopy(value)
        holder = changed
        for step in place:
            holder = holder[step]
        if isinstance(holder, dict):
            holder["surplus"] = 1
            yield f"{named(place)} surplus", changed


def named(place: tuple[Any, ...]) -> str:
    """The last two names of a place."""
    return ".".join([step for step in place if isinstance(step, str)][-2:])


def places(value: Any, above: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Where everything is in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for step, member in inner:
        yield (*above, step)
        yield from places(member, (*above, step))


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (observed("GET /orgs/{org}/hooks", 418, {}), "does not have this status"),
        (observed("GET /orgs/{org}/hooks", 202, {}), "does not have this status"),
        (observed("GET /orgs/{org}/hooks", 500, {}), "does not have this status"),
        (observed("POST /orgs/{org}/hooks", 304), "does not have this status"),
        (observed("DELETE /orgs/{org}/hooks/{hook_id}", 204, {}), "must have no body"),
        (observed("GET /orgs/{org}/hooks", 304, []), "must have no body"),
        (observed("GET /orgs/{org}/hooks", 200), "must be JSON"),
        (observed("GET /orgs/{org}/hooks", 200, {}), "Expected `array`, got `object`"),
        (observed("GET /orgs/{org}/hooks", 404, {"message": "x"}), "missing required field `documentation_url`"),
        (
            observed(
                "GET /orgs/{org}/hooks",
                404,
                {"message": "x", "documentation_url": "https://docs.example.com", "status": "403"},
            ),
            "the body's status is another one",
        ),
        (observed("GET /downloads/{owner}/{repo}/{sha}/{path}", 200, {}), "must not be JSON"),
    ],
)
def test_an_answer_that_is_not_the_platforms_is_caught(seen: Observed, said: str) -> None:
    """A status that the endpoint does not have, a body where none may be, none where one must be, another shape."""
    fault = CHECKER.fault(seen)
    assert fault is not None
    assert said in fault
    assert seen.path in fault


def test_an_endpoint_without_a_schema_is_caught() -> None:
    """A route of the sandbox that nobody wrote a schema for is not an endpoint."""
    lacking = Checker({name: answers for name, answers in ENDPOINTS.items() if name != RATE_LIMIT})
    fault = lacking.fault(observed(RATE_LIMIT, 200, {}))
    assert fault is not None
    assert "the endpoint has no schema" in fault


async def test_a_schema_made_wrong_on_purpose_is_caught(start: Any) -> None:
    """With wrong schemas, right answers are violations: a field too many, one too few, a body where none may be."""
    platform, wrong = await start(), Checker(WRONG)
    for body, said in (
        (NEW, "missing required field `motto`"),
        (NEW, "it must have no body"),
    ):
        seen = await platform.ask("POST", "/admin/organizations", body)
        assert CHECKER.fault(seen) is None
        assert said in (wrong.fault(seen) or "")
    seen = await platform.ask("GET", "/rate_limit")
    assert "unknown field `rate`" in (wrong.fault(seen) or "")
    assert CHECKER.fault(seen) is None


async def test_what_depends_on_the_version_is_told_apart(start: Any) -> None:
    """An answer of one version is none of the other: rate limits, and submodules in listings."""
    platform = await start()
    for path in ("/rate_limit", "/repos/acme-eng/hello-world/contents/third_party"):
        for version, other in (("2022-11-28", "2026-03-10"), ("2026-03-10", "2022-11-28")):
            seen = await platform.ask("GET", path, **{"X-Service-Api-Version": version})
            assert CHECKER.fault(seen) is None
            turned = Observed(
                seen.method, seen.path, seen.route, other, seen.media, seen.status, seen.headers, seen.body
            )
            assert CHECKER.fault(turned) is not None, (path, version)


# -- what is not the platform's


async def test_faults_are_not_observed(start: Any) -> None:
    """What a fault makes of an answer says nothing about the platform."""
    platform = await start(faults={"html": 1.0})
    with pytest.raises(IndexError):
        await platform.ask("GET", "/orgs/acme-ops/rulesets")
    seen = await platform.ask("GET", "/rate_limit")
    assert (seen.status, CHECKER.fault(seen)) == (200, None)


async def test_endpoints_of_tests_are_not_checked(start: Any) -> None:
    """A test may serve what it likes at addresses of its own."""

    async def anything(_: object) -> Answer:
        return Answer(299, {"any": "thing"})

    platform = await start(Area("Test", (Route("GET", "/test/anything", anything),)))
    seen = await platform.ask("GET", "/test/anything")
    assert (seen.status, CHECKER.fault(seen)) == (299, None)
    assert CHECKER.fault(await platform.ask("GET", "/nowhere")) is None
