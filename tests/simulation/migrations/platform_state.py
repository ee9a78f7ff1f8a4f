"""What the platform of a simulation holds, to be compared: no ids that are given anew, no commits, no secrets.

It begins at random, and somebody else changes it at random. Both are done to the sandbox's state, not by requests.
"""

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from bulk.sandbox.git.repositories import Repositories
from bulk.sandbox.git.repository import Change
from bulk.sandbox.git.revision import Entry, Kind, Revision
from bulk.sandbox.store.records import Repository
from tests.simulation.witness import RIVAL
from tests.simulation.world import World

Key: TypeAlias = tuple[str, ...]
PlatformState: TypeAlias = Mapping[Key, Any]

LABS: Final = "acme-labs"
"""The organization that is renamed; it is called so in every key."""
ORGANIZATIONS: Final = ("acme-eng", "acme-ops", LABS)
TEAMS: Final = ("ent:platform", "ent:security")
REPOSITORIES: Final = {"hello-world": "acme-eng", "private-notes": "acme-eng", "tools": LABS}
PATHS: Final = ("a", "b c.txt", "d", "d/x", "d/y", "e/f/g")
FIRST_HOOK: Final = 4_100
HOOKS: Final = 3
CONFIGURATIONS: Final = (2001, 2003)
LINK: Final = "secret_scanning_push_protection_custom_link"
FLAGS: Final = (
    "dependabot_alerts_enabled_for_new_repositories",
    "secret_scanning_enabled_for_new_repositories",
    "secret_scanning_push_protection_enabled_for_new_repositories",
)
SEED_DATA: Final = """\
repositories:
  - {organization: acme-labs, name: tools, files: {README.md: tools}}
license: {advanced_security_seats: 100}
"""
_TABLES: Final = {
    "assignment": "SELECT t.slug, o.id, 1 FROM team_organizations a JOIN teams t ON t.id = a.team_id "
    "JOIN organizations o ON o.id = a.organization_id",
    "login": "SELECT id, login FROM organizations",
    "ruleset": "SELECT source_id, name, rules_json FROM rulesets",
    "snapshot": "SELECT repository_id, correlator, hex(digest) FROM snapshots",
    "attached": "SELECT repository_id, configuration_id FROM configuration_repositories",
    "product": "SELECT product, enablement FROM enterprise_products",
    "thread": "SELECT id, unread FROM threads",
}


@dataclass(slots=True)
class Platform:
    """The state of a world's sandbox."""

    made: World
    written: int = 0

    @property
    def _db(self) -> Any:
        return self.made.sandbox.context.state.db

    def look(self) -> PlatformState:
        """Everything that the operations change."""
        found: dict[Key, Any] = {}
        for kind, query in _TABLES.items():
            for *names, value in self._db.execute(query):
                found[kind, *map(str, names)] = value
        for number, name, description, settings in self._db.execute(
            "SELECT id, name, description, settings_json FROM configurations"
        ):
            fields = {"name": name, "description": description, **json.loads(settings)}
            found.update((("configuration", str(number), field), value) for field, value in fields.items())
        (settings,) = self._db.execute("SELECT settings_json FROM enterprise_security").fetchone()
        found.update((("security", field), value) for field, value in json.loads(settings).items() if value)
        for organization, active, events, config in self._db.execute(
            "SELECT organization_id, active, events_json, config_json FROM hooks"
        ):
            for key, value in _hook(str(organization), active, json.loads(events), json.loads(config)):
                found[key] = sorted([*found.get(key, ()), str(value)])  # several may have one URL but for its query
        for name in REPOSITORIES:
            repository = self._repository(name)
            revision = self._git.revision(repository)
            root = revision.entry("") if revision is not None else None
            if revision is not None and root is not None:
                found.update((("file", name, entry.path), entry.sha) for entry in _files(revision, root))
        return found

    def begin(self, dice: random.Random) -> None:
        """Some files, webhooks, assignments and settings are there, and others are not."""
        for name in REPOSITORIES:
            taken = [path for path in PATHS if path != "d" and dice.random() < 0.5]
            if not any(path.startswith("d/") for path in taken) and dice.random() < 0.5:
                taken.append("d")
            # few texts, so that one blob is in several places
            changes = {path: Change(f"text {dice.randrange(4)}\n".encode()) for path in taken}
            if changes:
                self._commit(name, changes)
        with self.made.sandbox.context.state.transaction() as db:
            for number in range(FIRST_HOOK, FIRST_HOOK + HOOKS):
                if dice.random() < 0.8:
                    self._add_hook(number, dice)
            for team in (501, 502):
                for organization in (101, 102, 103):
                    if dice.random() < 0.4:
                        db.execute("INSERT OR IGNORE INTO team_organizations VALUES (?, ?)", (team, organization))
            settings = {flag: dice.random() < 0.5 for flag in FLAGS}
            more = {LINK: "https://before.example.com"} if dice.random() < 0.5 else {}
            db.execute("UPDATE enterprise_security SET settings_json = ?", (json.dumps({**settings, **more}),))

    def _add_hook(self, number: int, dice: random.Random) -> None:
        config = {
            "url": url_of(number),
            "content_type": dice.choice(("json", "form")),
            "insecure_ssl": dice.choice("01"),
        }
        if dice.random() < 0.3:
            config["secret"] = "s"
        # not active: nothing is delivered
        self._db.execute(
            "INSERT INTO hooks VALUES (?, 101, 'user', 0, ?, ?, 0, 0)",
            (number, json.dumps(dice.choice((["push"], ["push", "fork"], ["*"]))), json.dumps(config)),
        )

    def change(self, thing: Key) -> None:
        """Somebody else makes a thing what it has never been, or removes it.

        Args:
            thing: the beginning of its keys.
        """
        self.written += 1
        match thing:
            case ("file", name, path):
                self._change_file(name, path)
            case ("hook", _, url):
                self._change_hook(url)
            case ("assignment", team, organization):
                self._turn_assignment(team, organization)
            case ("configuration", number):
                words = f"theirs {self.written}", int(number)
                with self.made.sandbox.context.state.transaction() as db:
                    db.execute("UPDATE configurations SET description = ? WHERE id = ?", words)
            case ("security",):
                row = self._db.execute("SELECT settings_json FROM enterprise_security").fetchone()
                settings = {**json.loads(row[0]), LINK: f"https://theirs-{self.written}.example.com"}
                with self.made.sandbox.context.state.transaction() as db:
                    db.execute("UPDATE enterprise_security SET settings_json = ?", (json.dumps(settings),))

    def change_all(self, things: Iterable[Key]) -> None:
        """The same with several."""
        for thing in sorted(things):
            self.change(thing)

    def _change_file(self, name: str, path: str) -> None:
        revision = self._git.revision(self._repository(name))
        assert revision is not None
        entry = revision.entry(path)
        above = revision.entry(path.partition("/")[0]) if "/" in path else None
        if (entry is not None and entry.kind is not Kind.FILE) or (above is not None and above.kind is Kind.FILE):
            return
        is_gone = entry is not None and self.written % 3 == 0
        self._commit(name, {path: None if is_gone else Change(f"theirs {self.written}\n".encode())})

    def _change_hook(self, url: str) -> None:
        with self.made.sandbox.context.state.transaction() as db:
            row = db.execute("SELECT id FROM hooks WHERE config_json LIKE ?", (f'%"{url}%',)).fetchone()
            if row is None:
                return
            if self.written % 3 == 0:
                db.execute("DELETE FROM hooks WHERE id = ?", (row[0],))
            else:
                events = json.dumps(["push", "watch", f"team_{self.written}"])
                db.execute("UPDATE hooks SET events_json = ? WHERE id = ?", (events, row[0]))

    def _turn_assignment(self, team: str, organization: str) -> None:
        with self.made.sandbox.context.state.transaction() as db:
            (number,) = db.execute("SELECT id FROM teams WHERE slug = ?", (team,)).fetchone()
            pair = number, int(organization)
            gone = db.execute("DELETE FROM team_organizations WHERE team_id = ? AND organization_id = ?", pair)
            if not gone.rowcount:
                db.execute("INSERT INTO team_organizations VALUES (?, ?)", pair)

    @property
    def _git(self) -> Repositories:
        return self.made.sandbox.context.get(Repositories)

    def _repository(self, name: str) -> Repository:
        state = self.made.sandbox.context.state
        number = 103 if REPOSITORIES[name] == LABS else 101
        found = state.repository(state.organization_by_id(number), name)
        assert found is not None
        return found

    def _commit(self, name: str, changes: Mapping[str, Change | None]) -> None:
        self._git.git(self._repository(name)).commit("main", changes, "Mine", RIVAL, RIVAL)


def url_of(number: int) -> str:
    """Where the events of a webhook go."""
    return f"http://127.0.0.1:9/{number}/"


def _hook(organization: str, active: int, events: list[str], config: Mapping[str, Any]) -> Iterator[tuple[Key, Any]]:
    fields = {**{name: value for name, value in config.items() if name != "secret"}, "active": active}
    for field, value in {**fields, "events": sorted(events)}.items():
        yield ("hook", organization, config["url"].partition("?")[0], field), value


def _files(revision: Revision, directory: Entry) -> Iterator[Entry]:
    for entry in revision.entries(directory):
        if entry.kind is Kind.DIRECTORY:
            yield from _files(revision, entry)
        else:
            yield entry
