"""Writes the items of the example manifests: `python jobs/examples/make_items.py`. They are committed; this says where
they come from, and is a pattern for making your own from an inventory.

The fleet is what `bulk sandbox` makes of `repositories: {organization: acme-fleet, count: 2000}`.
"""

import csv
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

FLEET, REPOSITORIES = "acme-fleet", 2_000
WRITTEN_REPOSITORIES = 25
SNAPSHOT_REPOSITORIES = 250
SPELLINGS = ("acme-fleet", "Acme-Fleet", "ACME-FLEET")
"""The platform takes all of them for the same organization; so does a lane."""

POLICIES = {
    "SECURITY.md": "security.md",
    "SUPPORT.md": "support.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "LICENSE": "license.txt",
    "NOTICE": "notice.txt",
    ".editorconfig": "editorconfig.txt",
    ".gitattributes": "gitattributes.txt",
    "docs/README.md": "docs-readme.md",
    "docs/decisions/0001-record-decisions.md": "decision.md",
    ".github/PULL_REQUEST_TEMPLATE.md": "pull-request.md",
}
"""Path in a repository -> file below `files/`."""

TEAMS = ("web", "mobile", "payments", "search", "platform", "data", "identity", "mail", "maps", "media")
PLACES = ("north", "south", "east", "west")
MIGRATED = tuple(f"borealis-{team}-{place}" for team in TEAMS for place in (*PLACES, "central"))
MIGRATED_REPOSITORIES = ("api", "web")
"""What sandbox/migration.yaml gives to every new organization."""
ENTERPRISE_TEAMS = ("ent:platform", "ent:security", "ent:migration")
MIGRATED_FILES = {
    "CODEOWNERS": "codeowners.txt",
    "SECURITY.md": "security.md",
    ".editorconfig": "editorconfig.txt",
    "docs/README.md": "docs-readme.md",
}
SCANNED = "2026-11-21T08:00:00Z"


def repositories() -> Iterator[dict[str, Any]]:
    """Yield every repository of the fleet."""
    for number in range(REPOSITORIES):
        yield {"owner": FLEET, "repo": f"repo-{number:05d}"}


def policies() -> Iterator[dict[str, Any]]:
    """Yield eleven files for each of 25 repositories, in mixed case; the same repository stands under several
    spellings.
    """
    for number in range(WRITTEN_REPOSITORIES):
        for place, (path, file) in enumerate(POLICIES.items()):
            repo = f"repo-{number:05d}"
            yield {
                "id": f"{repo}:{path}",
                "owner": SPELLINGS[place % len(SPELLINGS)],
                "repo": repo if place % 2 else repo.title(),
                "path": path,
                "content_file": f"files/{file}",
                "author.name": "Policy Team",
                "author.email": "policy@acme.example",
            }


def snapshots() -> Iterator[dict[str, Any]]:
    """Yield two snapshots for each of 250 repositories, of two jobs: two lanes each, because their
    correlators differ.
    """
    for number in range(SNAPSHOT_REPOSITORIES):
        for language, file in (("npm", "files/npm.json"), ("pypi", "files/pypi.json")):
            yield {
                "owner": FLEET,
                "repo": f"repo-{number:05d}",
                "sha": f"{number + 1:040x}",
                "job": {"id": f"{7_000 + number}", "correlator": f"inventory-{language}"},
                "scanned": SCANNED,
                "manifest_file": file,
            }


def organizations() -> Iterator[dict[str, Any]]:
    """Yield forty organizations: each of ten teams in each of four places."""
    for team in TEAMS:
        for place in PLACES:
            login = f"acme-{team}-{place}"
            yield {"login": login, "profile_name": f"Acme {team.title()} {place.title()}"}


def migrated_organizations() -> Iterator[dict[str, Any]]:
    """Yield fifty organizations: each of ten teams in each of five places."""
    for login in MIGRATED:
        yield {"login": login, "profile_name": login.replace("-", " ").title()}


def migrated_teams() -> Iterator[dict[str, Any]]:
    """Yield three enterprise teams for each of them."""
    for login in MIGRATED:
        for team in ENTERPRISE_TEAMS:
            yield {"enterprise-team": team, "org": login}


def migrated_files() -> Iterator[dict[str, Any]]:
    """Yield four files for each of their repositories."""
    for login in MIGRATED:
        for repo in MIGRATED_REPOSITORIES:
            for path, file in MIGRATED_FILES.items():
                yield {
                    "owner": login,
                    "repo": repo,
                    "path": path,
                    "content_file": f"files/{file}",
                    "message": f"Add {path}",
                }


def migrated_snapshots() -> Iterator[dict[str, Any]]:
    """Yield one snapshot for each of them."""
    for number, login in enumerate(MIGRATED):
        yield {
            "owner": login,
            "repo": "api",
            "sha": f"{number + 1:040x}",
            "job": {"id": f"{9_000 + number}", "correlator": "migration"},
        }


def write(folder: Path) -> None:
    """Write every items file below `folder`, the same bytes each time."""
    lines = b"".join(json.dumps(item).encode() + b"\n" for item in repositories())
    (folder / "repositories.jsonl.gz").write_bytes(gzip.compress(lines, mtime=0))
    (folder / "policies.csv").write_text(_csv(list(policies())), newline="")
    lines = b"".join(json.dumps(item).encode() + b"\n" for item in snapshots())
    (folder / "snapshots.jsonl.zst").write_bytes(zstandard.ZstdCompressor(level=19).compress(lines))
    (folder / "organizations.yaml").write_text(_yaml(list(organizations())))
    (folder / "migration-organizations.csv").write_text(_csv(list(migrated_organizations())), newline="")
    (folder / "migration-teams.csv").write_text(_csv(list(migrated_teams())), newline="")
    (folder / "migration-files.csv").write_text(_csv(list(migrated_files())), newline="")
    lines = b"".join(json.dumps(item).encode() + b"\n" for item in migrated_snapshots())
    (folder / "migration-snapshots.jsonl").write_bytes(lines)


def _csv(items: list[dict[str, Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(items[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(items)
    return text.getvalue()


def _yaml(items: list[dict[str, Any]]) -> str:
    head = "# Forty organizations; who manages them stands in the manifest, under `with`.\n"
    return head + "".join(f"- {{login: {item['login']}, profile_name: {item['profile_name']}}}\n" for item in items)


if __name__ == "__main__":
    write(Path(__file__).parent / "items")
