"""The state: standard data, seed files, a second start, and what can't be used."""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bulk.sandbox import ExtraToken, SettingError, Settings, opened, running
from bulk.sandbox.areas import rate_limit
from bulk.sandbox.areas.organizations import organizations
from bulk.sandbox.areas.rulesets import rulesets
from bulk.sandbox.areas.served import AREAS
from bulk.sandbox.areas.snapshots import snapshots

if TYPE_CHECKING:
    from tests.sandbox.conftest import Start, Visit

TEST_AREAS = (organizations.AREA, rate_limit.AREA, rulesets.AREA, snapshots.AREA)
SEED = """\
users:
  - {login: dave, name: Dave Dorn}
  - {login: BOB, email: bob@other.example}
organizations:
  - {login: acme-new, description: Fresh., owners: [dave], members: [alice]}
repositories:
  - {organization: acme-new, name: app, private: true, files: {README.md: "# App\\n"}}
  - {organization: acme-fleet, count: 12, readme_bytes: 300}
tokens:
  - {token: dave-token, user: dave, scopes: [repo, "read:org"]}
  - {token: app-token, user: dave, kind: installation, organization: acme-new, permissions: {contents: read}}
"""


async def test_standard_data(start: Start) -> None:
    """Everything of the table of standard data is there, under its id."""
    db = (await start()).sandbox.context.state.db

    def ids(table: str, column: str = "id") -> list[int]:
        return [row[0] for row in db.execute(f"SELECT {column} FROM {table} ORDER BY 1")]

    assert [row["login"] for row in db.execute("SELECT login FROM users ORDER BY id")] == [
        "octoadmin",
        "alice",
        "bob",
        "carol",
    ]
    assert ids("organizations") == [101, 102, 103]
    assert ids("repositories") == [1001, 1002, 1003, 1004]
    assert ids("teams") == [501, 502]
    assert [tuple(row) for row in db.execute("SELECT * FROM team_organizations")] == [(501, 101)]
    assert ids("configurations") == [1001, 2001, 2002, 2003]
    assert [tuple(row)[:2] for row in db.execute("SELECT * FROM configuration_repositories")] == [
        (1001, 2001),
        (1002, 2003),
    ]
    assert ids("rulesets") == [3001, 3101]
    assert ids("ruleset_versions", "version_id") == [31, 32, 33]
    assert ids("hooks") == [4001]
    assert [row["event"] for row in db.execute("SELECT event FROM deliveries WHERE hook_id = 4001")] == ["push"] * 3
    threads = db.execute("SELECT id, reason, unread FROM threads ORDER BY updated_at DESC").fetchall()
    assert [tuple(row) for row in threads] == [
        (1, "mention", 1),
        (2, "review_requested", 1),
        (3, "assign", 0),
        (4, "subscribed", 1),
    ]
    assert len({row["user_id"] for row in db.execute("SELECT * FROM committers")}) == 3
    for table in ("configurations", "rulesets", "ruleset_versions", "hooks"):
        for row in db.execute(f"SELECT * FROM {table}"):
            for column in (name for name in row.keys() if name.endswith("_json")):  # noqa: SIM118
                json.loads(row[column])


async def test_no_token_in_the_file(start: Start, tmp_path: Path) -> None:
    """The state holds no token's text, only hashes."""
    await start(state=tmp_path / "state")
    held = b"".join(path.read_bytes() for path in (tmp_path / "state").glob("state.db*"))
    assert b"octoadmin" in held
    assert b"sbx-" not in held


async def test_seed_file(start: Start, tmp_path: Path) -> None:
    """A seed file adds users, organizations, repositories, tokens and fleets, and replaces what has the same name."""
    path = tmp_path / "seed.yaml"
    path.write_text(SEED)
    platform = await start(seed_data=path, areas=AREAS)
    state = platform.sandbox.context.state
    dave, bob = state.user("Dave"), state.user("bob")
    assert dave is not None
    assert bob is not None
    assert (dave.id, dave.name, bob.id, bob.email) == (5, "Dave Dorn", 3, "bob@other.example")
    made = state.organization("acme-new")
    assert made is not None
    assert (made.id, made.description, state.role(made, dave)) == (104, "Fresh.", "owner")
    readme = "/repos/acme-new/app/readme"
    tokens = ("dave-token", "sbx-org-owner", "app-token", "sbx-member")
    assert [(await platform.ask("GET", readme, token=token)).status for token in tokens] == [200, 200, 200, 404]
    snapshots_path = "/repos/acme-new/app/dependency-graph/snapshots"
    written = [(await platform.ask("POST", snapshots_path, token=token, body={})).status for token in tokens]
    assert written == [422, 422, 403, 404]
    fleet = [(await platform.ask("GET", f"/repos/acme-fleet/repo-000{n}/readme")).status for n in ("00", "11", "12")]
    assert fleet == [200, 200, 404]


async def test_seed_of_one_fleet_in_json(start: Start, tmp_path: Path) -> None:
    """A seed file may be JSON, and `repositories` one generator."""
    path = tmp_path / "seed.json"
    path.write_text('{"repositories": {"organization": "acme-fleet", "count": 3, "readme_bytes": 50, "prefix": "r"}}')
    platform = await start(seed_data=path, areas=AREAS)
    assert (await platform.ask("GET", "/repos/acme-fleet/r00002/readme")).status == 200


async def test_seed_instead_of_the_standard_data(start: Start, tmp_path: Path) -> None:
    """`standard: false` begins without the standard data."""
    path = tmp_path / "seed.yaml"
    path.write_text("standard: false\nusers: [{login: zoe, site_admin: true}]\ntokens: [{token: z, user: zoe}]\n")
    platform = await start(seed_data=path)
    assert (await platform.ask("GET", "/rate_limit")).status == 401
    assert (await platform.ask("GET", "/orgs/acme-eng/rulesets", token="z")).status == 404
    body = {"login": "own", "admin": "zoe"}
    assert (await platform.ask("POST", "/admin/organizations", token="z", body=body)).status == 201


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("seed.yaml", "usrs: []", "unknown field `usrs`"),
        ("seed.yaml", "users: [{login: dave, nam: Dave}]", r"unknown field `nam` - at `\$.users\[0\]`"),
        ("seed.yaml", "users: [{login: -dave}]", r"at `\$.users\[0\].login`"),
        ("seed.yaml", "users: [{login: 5}]", "Expected `str`"),
        ("seed.yaml", "users: [", "line 1"),
        ("seed.yaml", "a: 1\na: 2", "duplicate key"),
        ("seed.json", '{"users": ', "seed.json"),
        ("seed.yaml", "[]", "Expected `object`"),
        ("seed.yaml", "organizations: [{login: x, owners: [nobody]}]", "there is no user 'nobody'"),
        ("seed.yaml", "organizations: [{login: bob}]", "is a user already"),
        ("seed.yaml", "repositories: {organization: x}", r"repositories\[0\]: give either name"),
        ("seed.yaml", "repositories: {organization: x, count: 0}", "count"),
        ("seed.yaml", "tokens: [{token: t, user: nobody}]", "there is no user 'nobody'"),
        ("seed.yaml", "tokens: [{token: t, user: bob, kind: installation}]", "names its organization"),
        ("seed.yaml", "tokens: [{token: t, user: bob, kind: magic}]", "kind"),
        ("seed.yaml", "license: {expire_at: '9999-12-31T23:59:59-14:00'}", "license: .*9999"),
        (
            "seed.yaml",
            "notifications: [{user: bob, repository: acme-ops/runbook, updated_at: '0001-01-01T00:00:00+14:00'}]",
            r"notifications\[0\]: .*0001",
        ),
        ("seed.yaml", "tokens: [{token: t, user: bob, organization: gone}]", "there is no organization 'gone'"),
    ],
)
async def test_wrong_seed_files(start: Start, tmp_path: Path, name: str, text: str, said: str) -> None:
    """A wrong seed file is a SettingError that names the file."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(SettingError, match=said) as caught:
        await start(seed_data=path)
    assert str(path) in str(caught.value)


async def test_a_wrong_seed_file_leaves_nothing(start: Start, tmp_path: Path) -> None:
    """A state that could not be seeded is still new: a start without the wrong file begins with the standard data."""
    path = tmp_path / "seed.yaml"
    path.write_text("users: [{login: dave}]\ntokens: [{token: t, user: nobody}]")
    with pytest.raises(SettingError):
        await start(seed_data=path, state=tmp_path / "state")
    platform = await start(state=tmp_path / "state")
    assert (await platform.ask("GET", "/orgs/acme-eng/rulesets")).status == 200
    assert platform.sandbox.context.state.user("dave") is None


async def test_seed_file_that_is_not_there(start: Start, tmp_path: Path) -> None:
    """A seed file that can't be read is a SettingError."""
    with pytest.raises(SettingError, match="No such file"):
        await start(seed_data=tmp_path / "missing.yaml")
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingError, match=r"bad\.yaml"):
        await start(seed_data=tmp_path / "bad.yaml")


async def test_a_second_start_goes_on(visit: Visit, tmp_path: Path) -> None:
    """Started again with the same state and seed file, all is as it was left, ids go on, nothing is seeded twice."""
    seed = tmp_path / "seed.yaml"
    seed.write_text(SEED)
    settings = Settings(state=tmp_path / "state", seed_data=seed)
    body = {"login": "made-first", "admin": "dave"}
    async with running(settings) as sandbox:
        assert (await visit(sandbox).ask("POST", "/admin/organizations", body=body)).json()["id"] == 106
    async with running(settings) as sandbox:
        platform = visit(sandbox)
        assert (await platform.ask("POST", "/admin/organizations", body=body)).status == 422
        assert (await platform.ask("GET", "/orgs/made-first/rulesets", token="dave-token")).status == 200
        assert (await platform.ask("GET", "/repos/acme-fleet/repo-00000/readme")).status == 200
        again = {"login": "made-second", "admin": "dave"}
        assert (await platform.ask("POST", "/admin/organizations", body=again)).json()["id"] == 107


async def test_tokens_of_the_command_line(visit: Visit, tmp_path: Path) -> None:
    """A token of the command line works for this start only; one of an unknown user is refused."""
    lent = Settings(state=tmp_path / "state", tokens=(ExtraToken("lent", "carol"),))
    async with running(lent) as sandbox:
        assert (await visit(sandbox).ask("GET", "/rate_limit", token="lent")).status == 200
    async with running(Settings(state=tmp_path / "state")) as sandbox:
        assert (await visit(sandbox).ask("GET", "/rate_limit", token="lent")).status == 401
    with pytest.raises(SettingError, match="there is no such user"):
        async with opened(Settings(tokens=(ExtraToken("lent", "nobody"),))):
            pass


async def test_one_sandbox_for_a_state(tmp_path: Path) -> None:
    """A second sandbox on the same state is refused; after the first ended it is not."""
    settings = Settings(state=tmp_path / "state")
    async with opened(settings):
        with pytest.raises(SettingError, match="another sandbox uses it"):
            async with opened(settings):
                pass
    async with opened(settings):
        pass


async def test_states_that_can_not_be_used(tmp_path: Path) -> None:
    """What is not a state, or another version's, is refused and left as it was."""
    text, foreign, newer = (tmp_path / name for name in ("text", "foreign", "newer"))
    for directory in (text, foreign, newer):
        directory.mkdir()
    (text / "state.db").write_text("no database at all, but long enough to be looked at " * 20)
    with sqlite3.connect(foreign / "state.db") as db:
        db.execute("CREATE TABLE other (a)")
    db.close()
    async with opened(Settings(state=newer)) as sandbox:
        sandbox.context.state.db.execute("UPDATE meta SET value = '99'")
    for directory, said in ((text, "not a database"), (foreign, "not the state of a sandbox"), (newer, "version 99")):
        before = (directory / "state.db").read_bytes()
        with pytest.raises(SettingError, match=said):
            async with opened(Settings(state=directory)):
                pass
        assert (directory / "state.db").read_bytes() == before


async def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    """`--state .` in a project makes nothing there; what a new volume has, and what the options name, is in no way."""
    project, volume = tmp_path / "project", tmp_path / "volume"
    project.mkdir()
    (project / "manifest.yaml").write_text("version: 1\n")
    with pytest.raises(SettingError, match=r"it holds 'manifest.yaml' and no state.db: name an empty or a new"):
        async with opened(Settings(state=project)):
            pass
    assert [path.name for path in project.iterdir()] == ["manifest.yaml"]
    (volume / "lost+found").mkdir(parents=True)
    (volume / "seed.yaml").write_text("{}\n")
    async with opened(Settings(state=volume, seed_data=volume / "seed.yaml", journal=volume / "journal.jsonl")):
        (volume / "notes.txt").write_text("")
    async with opened(Settings(state=volume)) as sandbox:
        assert not sandbox.context.state.is_new


async def test_a_seed_that_is_nested_too_deep(tmp_path: Path) -> None:
    """It is refused with what is wrong with it, and not with what the interpreter says."""
    seed = tmp_path / "seed.yaml"
    seed.write_text(f"tokens: {'[' * 5_000}{']' * 5_000}\n")
    with pytest.raises(SettingError, match=r"seed.yaml: nested too deep"):
        async with opened(Settings(seed_data=seed)):
            pass


async def test_a_directory_that_can_not_be_written(tmp_path: Path) -> None:
    """A state directory that can't be made is a SettingError."""
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingError, match="name a directory that can be written"):
        async with opened(Settings(state=tmp_path / "file" / "state")):
            pass


async def test_a_temporary_state_is_removed() -> None:
    """Without a state directory, one is made and removed at the end."""
    async with opened(Settings()) as sandbox:
        directory = sandbox.state
        assert (directory / "state.db").exists()
    assert not directory.exists()
    assert os.fspath(directory) != os.fspath(Path.cwd())


async def test_a_failed_change_is_undone_in_memory_too(start: Start) -> None:
    """A transaction that fails changes neither the file nor the records in memory."""
    state = (await start()).sandbox.context.state
    former = state.organization("acme-ops")
    assert former is not None

    def change_and_fail() -> None:
        with state.transaction() as db:
            state.add_organization(replace(former, login="changed"))
            db.execute("INSERT INTO meta VALUES ('version', 'twice')")

    with pytest.raises(sqlite3.IntegrityError):
        change_and_fail()
    assert (state.organization("changed"), state.organization("acme-ops")) == (None, former)
    assert state.token("sbx-member") is not None
