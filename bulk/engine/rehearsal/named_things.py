"""Finds the things that a manifest expects on the platform, for a sandbox on which its items are to be tried.

Only names are known: organizations, repositories and enterprise teams. What a job creates itself is left out, and what
has a number of its own (a webhook, a ruleset, a configuration) can't be made up.
"""

from typing import Any

from bulk.bundle.checked import refuse_standard_input
from bulk.bundle.streams import EntryStream
from bulk.check.checking import check
from bulk.manifest.manifest import Manifest
from bulk.operation import owner_of
from bulk.schedule.queues import all_of
from bulk.storage.scratch import scratch_folder

_README = {"README.md": "# Rehearsal\n"}


def seed_of(manifest: Manifest) -> dict[str, Any]:
    """Return the content of a seed file of the sandbox, with the things that the items name; blocks.

    Raises:
        ManifestError: an item can't be used.
        UsageError: items come from standard input, which can be read only once.
    """
    refuse_standard_input(manifest, "tried on a sandbox")
    owners: dict[str, set[str]] = {}
    created: set[str] = set()
    teams: set[str] = set()
    with scratch_folder("rehearsal") as folder:
        checked = check(manifest, folder, stdin=None, progress=lambda _: None)
        for job in manifest.jobs:
            if job.derivation is not None:
                continue  # made from results: these items are not known yet
            for entry in all_of(EntryStream(checked, job.number, folder)):
                owner, repository, enterprise = owner_of(entry.item)
                if owner and not enterprise:
                    owners.setdefault(owner, set()).update({repository} - {""})
                created.add(getattr(entry.item, "login", "").casefold())
                teams.add(getattr(entry.item, "enterprise_team", "").removeprefix("ent:"))
    later = {name for owner, names in owners.items() if owner in created for name in names}
    there = {owner: names for owner, names in owners.items() if owner not in created}
    return {
        "organizations": [{"login": owner} for owner in sorted(there)],
        "repositories": [
            {"organization": owner, "name": name, "files": _README} for owner in there for name in sorted(there[owner])
        ],
        "new_organizations": {"repositories": [{"name": name, "files": _README} for name in sorted(later)]},
        "teams": [{"name": name} for name in sorted(teams - {""})],
    }
