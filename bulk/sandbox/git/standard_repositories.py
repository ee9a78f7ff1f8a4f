"""The contents of the four standard repositories: the same commits, with the same shas, in every sandbox.

Source: the table of the sandbox's standard data.
"""

from __future__ import annotations

from collections.abc import Callable

from bulk.sandbox.git.repository import DEFAULT_BRANCH, Change, GitRepository
from bulk.sandbox.git.revision import GITLINK, SYMLINK, Person

FIRST_AT = 1735722000
"""When the first commits were made: 2025-01-01T09:00:00Z."""
SECOND_AT = FIRST_AT + 86_400
RUNBOOK_COMMIT = "36a7656cd3c79288b21eb17ac80ca1dab1b82711"
"""The one commit of runbook, which a submodule of hello-world names."""
_EXT_COMMIT = "5ca1ab1e0ddba11deadbea7c0ffee0000badcafe"
_HELLO_README = b"# Hello World\n\nStandard seed repository.\n"
_GITMODULES = b"""[submodule "third_party/lib"]
\tpath = third_party/lib
\turl = ../../acme-ops/runbook.git
[submodule "third_party/ext"]
\tpath = third_party/ext
\turl = https://git.example.org/vendor/ext.git
"""


def fill_hello_world(repository: GitRepository) -> None:
    """Make two commits on main: files, then links and submodules. The branch `dev` and the tag `v1.0` stay on the
    first.
    """
    first = {"README.md": Change(_HELLO_README), "docs/guide.md": Change(b"# Guide\n\nRead the README first.\n")}
    second = {
        ".gitmodules": Change(_GITMODULES),
        "docs/latest.md": Change(b"guide.md", SYMLINK),
        "docs/outside": Change(b"../../outside", SYMLINK),
        "third_party/ext": Change(_EXT_COMMIT.encode(), GITLINK),
        "third_party/lib": Change(RUNBOOK_COMMIT.encode(), GITLINK),
    }
    begun = _commit(repository, first, "Add README and guide", FIRST_AT)
    for ref in ("refs/heads/dev", "refs/tags/v1.0"):
        repository.point(ref, begun, FIRST_AT)
    _commit(repository, second, "Add links and submodules", SECOND_AT)


def fill_private_notes(repository: GitRepository) -> None:
    """Make one commit with a README."""
    _commit(repository, {"README.md": Change(b"# Private Notes\n\nFor members only.\n")}, "Add README", FIRST_AT)


def fill_runbook(repository: GitRepository) -> None:
    """Make one commit with a README and a page."""
    _commit(repository, _RUNBOOK, "Add runbook", FIRST_AT)


FILLS: dict[int, tuple[str, Callable[[GitRepository], None] | None]] = {
    1001: ("hello-world", fill_hello_world),
    1002: ("private-notes", fill_private_notes),
    1003: ("runbook", fill_runbook),
    1004: ("empty", None),
}
"""Number of a repository -> its name, and the function that fills it."""

_RUNBOOK = {
    "README.md": Change(b"# Runbook\n\nWhat to do when something breaks.\n"),
    "incidents/first-steps.md": Change(
        b"# First steps\n\n1. Breathe.\n2. Say that you are on it.\n3. Look before you act.\n"
    ),
}


def _commit(repository: GitRepository, changes: dict[str, Change], message: str, at: int) -> str:
    alice = Person("Alice", "alice@acme.example", at)
    made = repository.commit(DEFAULT_BRANCH, changes, message, alice, alice)
    repository.point(f"refs/heads/{DEFAULT_BRANCH}", made.sha, at)
    return made.sha
