"""What lies behind a redirect: what is found there counts, and that nothing is found does not."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bulk.execute.requests.redirects import same_elsewhere
from bulk.model import Request
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import PREFIX, simulate, world

JSON = "application/json"
FILE = {"owner": "acme-eng", "repo": "hello-world", "path": "README.md", "message": "Away with it"}
TEAM = {"enterprise": "acme", "enterprise-team": "ent:platform", "org": "acme-eng"}
DELETIONS: dict[str, tuple[dict[str, Any], str]] = {
    "contents.delete": (FILE, "/contents/README.md"),
    "team-organization.unassign": (TEAM, "/organizations/acme-eng"),
    "organization-configuration.delete": ({"org": "acme-eng", "configuration_id": 2002}, "/configurations/2002"),
    "webhook.delete": ({"org": "acme-ops", "hook_id": 4001}, "/hooks"),
}


def leads_to(target: str, path: str, times: int) -> Any:
    """The first reads of that path are led elsewhere; whoever writes it is told that it is not there."""
    left = times

    def fate_of(exchange: Exchange) -> Fate:
        nonlocal left
        found = exchange.path.partition("?")[0]
        if exchange.is_write and exchange.method == "DELETE" and found.endswith("/hooks/4001"):
            return answer(404, b'{"message": "Not Found"}', JSON)
        if found.endswith("/nothing"):
            return answer(200, b"[]", JSON)
        if not exchange.is_write and found.endswith(path) and left:
            left -= 1
            return answer(303, b"", Location=f"{PREFIX}{target}")
        return FINE

    return fate_of


@pytest.mark.parametrize("target", ["/nowhere", "/nothing"], ids=["404", "an empty list"])
@pytest.mark.parametrize("operation", DELETIONS)
def test_nothing_behind_a_redirect_is_not_absence(folder: Path, operation: str, target: str) -> None:
    """What is to be deleted is never taken for gone because a redirect leads to where nothing is: it is looked for
    again, and where the redirect stays the item is failed, or unknown where it was seen before its deletion was refused
    (failures.md row 9)."""
    item, path = DELETIONS[operation]
    is_hidden = operation == "webhook.delete"

    async def main() -> None:
        async with world(folder, fate_of=leads_to(target, path, 1_000)) as made:
            manifest = made.write("run", {"job": {"operation": operation, "items": [item]}}, {"settle": "2s"})
            assert (await made.run(manifest)).exit_code == (6 if is_hidden else 1)
            (line,) = made.lines(manifest)
            assert line["outcome"] == ("unknown" if is_hidden else "failed")
            assert line["error"]["code"] != "not_found"
            assert made.effects() == []

    simulate(main)


@pytest.mark.parametrize("operation", [each for each in DELETIONS if each != "webhook.delete"])
def test_a_redirect_that_is_over_does_no_harm(folder: Path, operation: str) -> None:
    """Led astray once, the read is repeated, and the item is done as ever."""
    item, path = DELETIONS[operation]

    async def main() -> None:
        async with world(folder, fate_of=leads_to("/nowhere", path, 1)) as made:
            manifest = made.write("run", {"job": {"operation": operation, "items": [item]}})
            assert (await made.run(manifest)).exit_code == 0
            assert made.lines(manifest)[0]["outcome"] == "succeeded"
            assert len(made.effects()) == 1

    simulate(main)


def renamed(exchange: Exchange) -> Fate:
    """The requests of a repository that has another name now, under its former name."""
    found = exchange.path.partition("?")[0]
    old = f"{PREFIX}/repos/acme-eng/former"
    if not found.startswith(old):
        return FINE
    place = f"{PREFIX}/repos/acme-eng/hello-world{found.removeprefix(old)}"
    return replace(answer(301, b'{"message": "Moved Permanently"}', JSON, Location=place), request_s=3.0)


def test_what_a_renamed_repository_lacks_is_looked_for_once_a_minute(folder: Path) -> None:
    """Of many items that are not there, behind a redirect of one repository, one takes all its tries in each minute;
    the others end as that one does, at the first look, and what is there is found (failures.md row 9)."""
    paths = [*(f"missing-{number}.md" for number in range(30)), "README.md"]
    items = [{"owner": "acme-eng", "repo": "former", "path": path} for path in paths]

    async def main() -> None:
        async with world(folder, fate_of=renamed) as made:
            jobs = {"job": {"operation": "contents.get", "items": items}}
            manifest = made.write("run", jobs, {"concurrency": 1, "failures": "100%"})
            assert (await made.run(manifest)).exit_code == 1
            *missing, found = made.lines(manifest)
            assert {line["error"]["code"] for line in missing} == {"bad_response"}
            assert found["outcome"] == "succeeded"
            names = Counter(each.path.rpartition("/")[2] for each in made.network.exchanges)
            tries = [names[path] for path in paths[:-1]]
            assert set(tries) == {2, 12}
            assert tries[0] == 12
            assert tries.count(12) == 3  # once a minute

    simulate(main)


@pytest.mark.parametrize(
    ("asked", "target", "leads_to"),
    [
        ("/repos/acme/app/readme", "/repositories/7/readme", ("/repositories/7/readme", "")),
        ("/repos/acme/app/readme", "/repositories/7/contents/LICENSE", None),
        ("/repos/acme/app/readme?ref=v1", "/repos/new/app/readme?ref=v1", ("/repos/new/app/readme", "ref=v1")),
        ("/repos/acme/app/readme?ref=v1", "/repos/new/app/readme", ("/repos/new/app/readme", "ref=v1")),
        ("/repos/acme/app/readme?ref=v1", "/repos/new/app/readme?x=1", ("/repos/new/app/readme", "x=1&ref=v1")),
        ("/repos/acme/app/readme?ref=v1", "/repos/new/app/readme?ref=main", None),
        ("/repos/acme/app/contents/a%20b", "/repos/new/app/contents/a+b", None),
        ("/repos/acme/app/contents/a%2Bb", "/repos/new/app/contents/a+b", ("/repos/new/app/contents/a+b", "")),
        ("/orgs/acme/hooks/7", "/organizations/3/hooks/7", ("/organizations/3/hooks/7", "")),
        ("/orgs/acme/hooks/7", "/organizations/3/hooks/7/", ("/organizations/3/hooks/7/", "")),
        ("/orgs/acme/hooks/7", "/orgs/acme/hooks/8", None),
        ("/orgs/acme/hooks/7", "/orgs/acme/hooks/77", None),
        ("/enterprises/a/teams/t/organizations/o", "/enterprises/a/teams/t/organizations/new", ...),
        ("/notifications/threads/1", "/notifications/threads/2", None),
        ("/enterprise/settings/license", "/login", None),
    ],
)
def test_a_redirect_to_something_else_is_not_followed(asked: str, target: str, leads_to: Any) -> None:
    """What stood at the end of a redirect counted as the item's, whatever it was: a license for the README, another
    webhook, another branch. A rename changes names alone (failures.md row 9)."""
    path, _, query = asked.partition("?")
    found = same_elsewhere(Request(method="GET", path=path, query=query), target)
    assert found == ((target, "") if leads_to is ... else leads_to)


def test_a_redirect_to_another_webhook_is_repeated(folder: Path) -> None:
    """The redirect is not followed, and where it stays the item is failed."""

    def fate_of(exchange: Exchange) -> Fate:
        is_it = exchange.path.endswith("/hooks/4001")
        return answer(302, b"", Location=f"{exchange.path[:-1]}2") if is_it else FINE

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            items = [{"org": "acme-ops", "hook_id": 4001}]
            manifest = made.write("run", {"job": {"operation": "webhook.get", "items": items}})
            assert (await made.run(manifest)).exit_code == 1
            assert made.lines(manifest)[0]["error"]["code"] == "bad_response"
            assert not any(each.path.endswith("/4002") for each in made.network.exchanges)

    simulate(main)


def test_a_redirect_keeps_what_the_query_asks_for(folder: Path) -> None:
    """A redirect without a query led to the README of the default branch, and that was taken for the one of the branch
    that was asked for."""
    asked = list[str]()

    def fate_of(exchange: Exchange) -> Fate:
        asked.append(exchange.path)
        return renamed(exchange)

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            item = {"owner": "acme-eng", "repo": "former", "ref": "main"}
            manifest = made.write("run", {"job": {"operation": "readme.get", "items": [item]}})
            assert (await made.run(manifest)).exit_code == 0

    simulate(main)
    assert [each for each in asked if "readme" in each] == [
        f"{PREFIX}/repos/acme-eng/former/readme?ref=main",
        f"{PREFIX}/repos/acme-eng/hello-world/readme?ref=main",
    ]
