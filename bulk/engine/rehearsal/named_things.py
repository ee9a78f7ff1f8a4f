"""What a manifest takes to be there already, for a platform on which its items are to be tried.

Only names are known: organizations, repositories and enterprise teams. What a job creates itself is left out, and what
has a number of its own (a webhook, a ruleset, a configuration) can't be made up.
"""

import tempfile
from pathlib import Path
from typing import Any

from bulk.bundle.streams import EntryStream
from bulk.check.checking import check
from bulk.manifest.manifest import Manifest

_AT_ONCE = 1_000
_README = {"README.md": "# Rehearsal\n"}


def seed_of(manifest: Manifest) -> dict[str, Any]:
    """Return a seed file of the sandbox with what the items name; blocks.

    Raises:
        ManifestError: an item can't be used.
    """
    organizations: set[str] = set()
    created: set[str] = set()
    repositories: dict[tuple[str, str], str] = {}
    teams: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="bulk-rehearsal-") as folder:
        place = Path(folder)
        checked = check(manifest, place, stdin=None, progress=lambda _: None)
        for number in range(len(checked.jobs)):
            if manifest.jobs[number].derivation is not None:
                continue  # made from results: nobody knows them yet
            stream = EntryStream(checked, number, place)
            while entries := stream.take(_AT_ONCE, _next):
                for entry in entries:
                    item = entry.item
                    names = [getattr(item, name, None) for name in ("owner", "repo", "org", "login", "enterprise_team")]
                    owner, repository, organization, login, team = (name or "" for name in names)
                    if owner and repository:
                        repositories.setdefault((owner.lower(), repository.lower()), f"{owner}/{repository}")
                    organizations.update(name for name in (owner, organization) if name)
                    created.update(name.lower() for name in (login,) if name)
                    teams.update(name.removeprefix("ent:") for name in (team,) if name)
    return _seed(organizations, created, sorted(repositories.values()), teams)


def _next(index: int) -> int:
    """Return the first item from that index on that is not done: nothing is."""
    return index


def _seed(organizations: set[str], created: set[str], repositories: list[str], teams: set[str]) -> dict[str, Any]:
    there: dict[str, list[str]] = {}
    later: set[str] = set()
    for full_name in repositories:
        owner, _, name = full_name.partition("/")
        if owner.lower() in created:
            later.add(name)
        else:
            there.setdefault(owner.lower(), []).append(name)
    spelled = {name.lower(): name for name in sorted(organizations)}
    return {
        "organizations": [{"login": name} for low, name in spelled.items() if low not in created],
        "repositories": [
            {"organization": spelled[owner], "name": name, "files": _README}
            for owner, names in there.items()
            for name in names
        ],
        "new_organizations": {"repositories": [{"name": name, "files": _README} for name in sorted(later)]},
        "teams": [{"name": name} for name in sorted(teams)],
    }
