"""What a run remembers of its creations: a number stands for one thing of one kind, in one organization."""

from typing import Any

import msgspec
import pytest

from bulk import operation
from bulk.capabilities import CreatesNames
from bulk.execute.writes.recent_writes import RecentCreations, names_made
from bulk.model import Effect, ErrorCode, failed, succeeded, unchanged

ABSENT = failed(ErrorCode.NOT_FOUND, "Not Found")
CREATIONS: dict[str, tuple[dict[str, Any], Effect]] = {
    "webhook.create": ({"org": "Acme", "config": {"url": "https://hooks.example.com"}}, Effect.CREATE),
    "organization-ruleset.create": (
        {"org": "Acme", "name": "Protect", "target": "push", "enforcement": "active"},
        Effect.CREATE,
    ),
    "enterprise-configuration.create": ({"enterprise": "Corp", "name": "Strict"}, Effect.CREATE_UNIQUE),
    "organization.create": ({"login": "7", "admin": "boss"}, Effect.CREATE_UNIQUE),
}
WAITED_FOR = {
    "webhook.create": ("/orgs/acme/hooks/7", "/orgs/ACME/hooks/7/config"),
    "organization-ruleset.create": ("/orgs/acme/rulesets/7",),
    "enterprise-configuration.create": (
        "/enterprises/corp/code-security/configurations/7",
        "/orgs/acme/code-security/configurations/7/attach",
        "/orgs/other/code-security/configurations/7",
    ),
    "organization.create": ("/orgs/7/hooks", "/repos/7/api/readme", "/enterprises/corp/teams/ent%3Aa/organizations/7"),
}
PATHS = (
    *(path for paths in WAITED_FOR.values() for path in paths),
    "/orgs/other/hooks/7",
    "/orgs/acme/hooks/8",
    "/orgs/acme/hooks",
    "/orgs/other/rulesets/7",
    "/enterprises/corp/rulesets/7/history",
    "/enterprises/other/code-security/configurations/7",
    "/notifications/threads/7",
)


@pytest.mark.parametrize("name", CREATIONS)
def test_a_number_stands_for_one_thing(name: str) -> None:
    """A 404 is waited for where the thing lies that this run has made, and final for others that have its number."""
    fields, effect = CREATIONS[name]
    creation = operation.find(name)
    recent_creations = RecentCreations(15.0)
    recent_creations.add(
        names_made(creation, msgspec.convert(fields, creation.Item), effect, succeeded({"id": 7})), 0.0
    )
    waited_for = {path for path in PATHS if recent_creations.pause_s(ABSENT, path, 0, 1.0) > 0.0}
    assert waited_for == set(WAITED_FOR[name])
    assert not any(recent_creations.pause_s(ABSENT, path, 0, 15.1) for path in PATHS)


@pytest.mark.parametrize("name", CREATIONS)
def test_what_was_there_is_not_new(name: str) -> None:
    """Only what succeeded, and was written, has made anything that has a number."""
    fields, effect = CREATIONS[name]
    creation = operation.find(name)
    assert isinstance(creation, CreatesNames)
    item = msgspec.convert(fields, creation.Item)
    for ended in (unchanged({"id": 7}), ABSENT):
        assert names_made(creation, item, effect, ended) == ()
    assert names_made(creation, item, None, succeeded({"id": 7})) == tuple(creation.new_names(item))
