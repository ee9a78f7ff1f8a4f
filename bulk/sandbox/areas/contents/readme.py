"""The preferred README of a repository.

It is taken from the first of `.github/`, the root and `docs/` that has one. In a directory `README.md` goes before
`README`, and `README` before any other `readme.*`; case does not matter, and of names that are still equal the first in
git's order is taken.
"""

from __future__ import annotations

from bulk.sandbox.areas.contents.contents import wanted_revision
from bulk.sandbox.areas.contents.files import FileView
from bulk.sandbox.git.revision import Entry, Kind, Revision, is_ref_name, linked_file
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.auth.rights import repository
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.refusals import invalid, not_found
from bulk.sandbox.http.routes import Area, Route

DIRECTORIES = (".github", "", "docs")


async def get_readme(call: Call) -> Answer:
    """GET /repos/{owner}/{repo}/readme: as the contents read of that file.

    Raises:
        Refused: 404, there is no README, or nothing is called `ref`; 422, `ref` can't be a name.
    """
    found = repository(call)
    ref = call.query.get("ref")
    if ref and not is_ref_name(ref):
        raise invalid(message=f"{ref!r} is not the name of a branch, a tag or a commit")
    revision = wanted_revision(call, found)
    readme = preferred_readme(revision)
    if readme is None:
        raise not_found()
    return await FileView(call, found, revision).answer(readme)


def preferred_readme(revision: Revision) -> Entry | None:
    """Return the README that stands for the repository: a file, or a symlink to one; None where there is none."""
    for path in DIRECTORIES:
        directory = revision.entry(path)
        if directory is None or directory.kind is not Kind.DIRECTORY:
            continue
        found: list[tuple[int, int, Entry]] = []
        for place, entry in enumerate(revision.entries(directory)):
            rank = _rank(entry.name.lower())
            if rank is not None and _is_file(revision, entry):
                found.append((rank, place, entry))
        if found:
            return min(found)[2]
    return None


def _rank(name: str) -> int | None:
    if not name.startswith("readme"):
        return None
    if name in ("readme.md", "readme"):
        return 0 if name.endswith(".md") else 1
    return 2 if name.startswith("readme.") else None


def _is_file(revision: Revision, entry: Entry) -> bool:
    return entry.kind is Kind.FILE or (entry.kind is Kind.SYMLINK and linked_file(revision, entry) is not None)


AREA = Area("README", (Route("GET", "/repos/{owner}/{repo}/readme", get_readme, anonymous=True),))
