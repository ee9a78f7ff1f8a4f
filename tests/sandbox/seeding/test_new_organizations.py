"""What a seed file gives to new organizations, and teams, the license and committers of a seed file."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bulk.sandbox import SettingError, Settings, running
from bulk.sandbox.areas import licenses
from bulk.sandbox.areas.configurations import enterprise_configurations, organization_configurations
from bulk.sandbox.areas.contents import contents, readme
from bulk.sandbox.areas.organizations import organizations, team_organizations
from bulk.sandbox.seeding.seeds import slug_of

if TYPE_CHECKING:
    from tests.sandbox.conftest import Platform, Start, Visit

TEST_AREAS = (
    contents.AREA,
    readme.AREA,
    organizations.AREA,
    organization_configurations.AREA,
    enterprise_configurations.AREA,
    team_organizations.AREA,
    licenses.AREA,
)
NEW = """\
new_organizations:
  repositories:
    - {name: api, description: The service., files: {README.md: "# Api\\n", docs/guide.md: "Read me.\\n"}}
    - {name: web, default_branch: trunk, files: {a.txt: a}}
    - {name: vault, private: true}
"""
COMMITTERS = "/enterprises/acme/settings/billing/advanced-security"


@pytest.fixture
def seeded(start: Start, tmp_path: Path) -> Any:
    """Starts a sandbox with a seed file of this text."""

    async def begin(text: str, **options: Any) -> Platform:
        path = tmp_path / "seed.yaml"
        path.write_text(text)
        return await start(seed_data=path, **options)

    return begin


async def create(platform: Platform, login: str) -> None:
    """A new organization."""
    reply = await platform.ask("POST", "/admin/organizations", body={"login": login, "admin": "alice"})
    assert reply.status == 201, reply.content


async def holders(platform: Platform, org: str, number: int) -> dict[str, str]:
    """Which repositories of an organization have a configuration, and how."""
    path = f"/orgs/{org}/code-security/configurations/{number}/repositories"
    return {entry["repository"]["name"]: entry["status"] for entry in (await platform.ask("GET", path)).json()}


async def test_new_organizations_get_repositories(seeded: Any) -> None:
    """Each new organization gets each repository, with its files, branch and visibility; others get none."""
    platform = await seeded(NEW)
    for login in ("first", "second"):
        await create(platform, login)
        guide = await platform.ask("GET", f"/repos/{login}/api/contents/docs/guide.md?ref=main")
        assert base64.b64decode(guide.json()["content"]) == b"Read me.\n"
        assert (await platform.ask("GET", f"/repos/{login}/API/readme")).status == 200
        assert (await platform.ask("GET", f"/repos/{login}/web/contents/a.txt?ref=trunk")).status == 200
        assert (await platform.ask("GET", f"/repos/{login}/api/readme", token="sbx-member")).status == 200
        vault = [
            await platform.ask("GET", f"/repos/{login}/vault/contents/x", token=t) for t in (None, "sbx-org-owner")
        ]
        assert ["empty" in reply.json()["message"] for reply in vault] == [False, True]
    assert (await platform.ask("GET", "/repos/acme-eng/api/readme")).status == 404
    body = {"message": "First", "content": ""}
    assert (await platform.ask("PUT", "/repos/first/vault/contents/x", body=body)).status == 201
    assert [line["effect"] for line in platform.journal() if line["effect"]][:2] == [
        "organization first created",
        "organization second created",
    ]


async def test_new_repositories_get_the_default_configuration(seeded: Any) -> None:
    """The enterprise's default for public repositories is attached to the public ones, and to no others."""
    platform = await seeded(NEW)
    await create(platform, "first")
    assert await holders(platform, "first", 1001) == {"api": "attached", "web": "attached"}
    assert await holders(platform, "acme-ops", 1001) == {}


async def test_the_default_with_too_few_licenses(seeded: Any) -> None:
    """A default that asks for licensed features without seats gives the free ones only: it is listed as failed."""
    platform = await seeded(NEW + "license: {advanced_security_seats: 2}\n")
    db = platform.sandbox.context.state.db
    db.execute('UPDATE configurations SET settings_json = \'{"advanced_security": "enabled"}\' WHERE id = 1001')
    await create(platform, "first")
    assert set((await holders(platform, "first", 1001)).values()) == {"failed"}
    db.execute("UPDATE licenses SET advanced_security_seats = 3")
    await create(platform, "second")
    assert set((await holders(platform, "second", 1001)).values()) == {"attached"}


async def test_kept_through_a_restart(visit: Visit, tmp_path: Path) -> None:
    """What new organizations get is part of the state; a further seed file without the key leaves it."""
    paths = {name: tmp_path / f"{name}.yaml" for name in ("first", "other", "none")}
    for path, text in zip(paths.values(), (NEW, "users: [{login: zoe}]", "new_organizations: {}"), strict=True):
        path.write_text(text)
    found = []
    for login, name in (("a", "first"), ("b", "other"), ("c", "none")):
        settings = Settings(state=tmp_path / "state", seed_data=paths[name])
        async with running(settings, areas=TEST_AREAS) as sandbox:
            platform = visit(sandbox)
            await create(platform, login)
            found.append((await platform.ask("GET", f"/repos/{login}/api/readme")).status)
    assert found == [200, 200, 404]


async def test_teams(seeded: Any) -> None:
    """A team's slug is made from its name; one that is there is replaced, keeps its id, and loses its organizations."""
    platform = await seeded(
        "teams:\n  - {name: Release Crew (EU), organizations: [acme-ops, ACME-LABS]}\n  - {name: Platform}\n"
    )
    path = "/enterprises/acme/teams/{}/organizations"
    crew = (await platform.ask("GET", path.format("ent:release-crew-eu"))).json()
    assert [each["login"] for each in crew] == ["acme-ops", "acme-labs"]
    assert (await platform.ask("GET", path.format("503"))).json() == crew
    assert [(await platform.ask("GET", path.format(team))).json() for team in ("ent:platform", "501")] == [[], []]
    assert slug_of("  Ünder & over  ") == "ent:nder-over"


async def test_license_and_committers(seeded: Any) -> None:
    """A license field that is given counts, the rest stays; committers take the place of those before, each a seat."""
    platform = await seeded(
        "license: {seats: 7, standalone: true, expire_at: 2031-01-01T00:00:00Z}\n"
        "repositories: [{organization: acme-labs, name: lab, advanced_security: true}]\n"
        "committers:\n"
        "  - {repository: acme-labs/lab, users: [carol, octoadmin], last_pushed_at: 2025-06-01T00:00:00Z}\n"
        "  - {repository: acme-eng/hello-world, users: [Carol, carol]}\n"
        "  - {repository: acme-eng/private-notes, users: [alice]}\n"
    )
    held = (await platform.ask("GET", "/enterprise/settings/license")).json()
    assert (held["seats"], held["kind"], held["expire_at"]) == (7, "standard", "2031-01-01T00:00:00Z")
    report = (await platform.ask("GET", f"{COMMITTERS}?advanced_security_product=code_security")).json()
    assert {each["name"]: each["advanced_security_committers"] for each in report["repositories"]} == {
        "acme-eng/hello-world": 1,
        "acme-ops/runbook": 2,
        "acme-labs/lab": 2,
    }
    # carol, bob and octoadmin; alice commits to a repository only that does not use advanced security
    assert (report["total_advanced_security_committers"], report["maximum_advanced_security_committers"]) == (3, 4)
    assert report["purchased_advanced_security_committers"] == 10


async def test_a_license_without_the_standard_data(seeded: Any) -> None:
    """Where there was none, what is not said is none, and it lasts a year."""
    platform = await seeded(
        "standard: false\nlicense: {seats: 3}\nusers: [{login: zoe, site_admin: true}]\ntokens: [{token: z, user: zoe}]"
    )
    held = (await platform.ask("GET", "/enterprise/settings/license", token="z")).json()
    assert (held["seats"], held["seats_used"], held["days_until_expiration"]) == (3, 1, 365)


DOCUMENTED = re.findall(
    r"^```yaml\n(.*?)^```", (Path(__file__).parents[3] / "docs" / "sandbox.md").read_text(), re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("text", DOCUMENTED)
async def test_documented_seed_files(seeded: Any, text: str) -> None:
    """Every seed file that docs/sandbox.md shows can be used."""
    assert len(DOCUMENTED) >= 4
    await seeded(text, areas=(organizations.AREA,))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("new_organizations: {repos: []}", r"unknown field `repos` - at `\$.new_organizations`"),
        (
            "new_organizations: {repositories: [{name: a, owner: b}]}",
            r"unknown field `owner` - at `\$.new_organizations.repositories\[0\]`",
        ),
        ("new_organizations: {repositories: [{name: a}, {name: A}]}", r"repositories\[1\]: the name 'A' stands there"),
        ("new_organizations: {repositories: [{name: a b}]}", r"\$.new_organizations.repositories\[0\].name"),
        ("new_organizations: {repositories: [{name: a, files: {../x: a}}]}", r"repositories\[0\].files"),
        ("new_organizations: {repositories: [{name: a, files: {.GIT/config: a}}]}", r"repositories\[0\].files"),
        ("new_organizations: {repositories: [{name: a, files: {a/: a}}]}", r"repositories\[0\].files"),
        ("new_organizations: {repositories: [{name: a, files: {a: '', a/b: ''}}]}", "'a' is a file, and 'a/b' needs"),
        ("new_organizations: {repositories: [{name: a, default_branch: '-x'}]}", "default_branch"),
        ("teams: [{name: A, organisations: []}]", r"unknown field `organisations` - at `\$.teams\[0\]`"),
        ("teams: [{name: A, organizations: [none]}]", r"teams\[0\]: there is no organization 'none'"),
        ("license: {seat: 5}", r"unknown field `seat` - at `\$.license`"),
        ("license: {seats: -5}", r"`\$.license.seats`"),
        ("committers: [{repository: a/b, users: []}]", r"committers\[0\]: there is no repository 'a/b'"),
        ("committers: [{repository: acme-eng/empty, users: [zoe]}]", r"committers\[0\]: there is no user 'zoe'"),
        ("repositories: {organization: f, count: 3, advanced_security: true}", "go with name, not with count"),
    ],
)
async def test_what_is_refused(start: Start, tmp_path: Path, text: str, said: str) -> None:
    """An unknown field or one that can't be meant is refused with the file, the place and the reason."""
    path = tmp_path / "seed.yaml"
    path.write_text(text)
    with pytest.raises(SettingError, match=said) as caught:
        await start(seed_data=path, areas=(organizations.AREA,))
    assert str(path) in str(caught.value)
