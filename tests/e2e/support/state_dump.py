"""What a sandbox holds, to be compared before and after: assignments, fields and trees; no ids, commits and secrets."""

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

Key: TypeAlias = tuple[str, ...]

_QUERIES = {
    "organization": "SELECT login, name FROM organizations",
    "assignment": "SELECT o.login, t.slug, 1 FROM team_organizations a JOIN teams t ON t.id = a.team_id "
    "JOIN organizations o ON o.id = a.organization_id",
    "configuration": "SELECT name, settings_json FROM configurations",
    "attached": "SELECT o.login, r.name, c.name FROM configuration_repositories a JOIN repositories r "
    "ON r.id = a.repository_id JOIN organizations o ON o.id = r.organization_id JOIN configurations c "
    "ON c.id = a.configuration_id",
    "ruleset": "SELECT o.login, r.name, r.rules_json FROM rulesets r JOIN organizations o ON o.id = r.source_id",
    "snapshot": "SELECT o.login, r.name, count(*) FROM snapshots s JOIN repositories r ON r.id = s.repository_id "
    "JOIN organizations o ON o.id = r.organization_id GROUP BY o.login, r.name",
    "security": "SELECT enterprise_id, settings_json FROM enterprise_security",
}


def dump(state: Path) -> dict[Key, Any]:
    """Everything that the operations change, by what it is of."""
    found: dict[Key, Any] = {}
    with closing(sqlite3.connect(state / "state.db")) as database:
        for kind, query in _QUERIES.items():
            for *names, value in database.execute(query):
                found[kind, *map(str, names)] = value
        hooks = "SELECT o.login, h.active, h.events_json, h.config_json FROM hooks h JOIN organizations o "
        for login, active, events, config in database.execute(f"{hooks} ON o.id = h.organization_id"):
            shown = {name: value for name, value in json.loads(config).items() if name != "secret"}
            found["hook", login, shown["url"]] = (active, sorted(json.loads(events)), shown)
    for repository in sorted((state / "repositories").glob("[!.]*/*.git")):
        name = f"{repository.parent.name}/{repository.stem}"
        found.update((("file", name, path), blob) for path, blob in _tree(repository))
    return found


def _tree(repository: Path) -> Iterator[tuple[str, str]]:
    """Paths and blobs of the branch `main`."""
    listed = subprocess.run(
        ["git", "-C", repository, "ls-tree", "-r", "main"], capture_output=True, text=True, check=False
    )
    for line in listed.stdout.splitlines():
        about, _, path = line.partition("\t")
        yield path, about.split()[2]


def without(found: dict[Key, Any], listed: set[Key]) -> dict[Key, Any]:
    """What is not of a thing that was listed: a key that begins with one of these is."""
    return {
        key: value
        for key, value in found.items()
        if not any(key[:length] in listed for length in range(1, len(key) + 1))
    }
