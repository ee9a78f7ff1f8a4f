"""Repository contents: reading files and directories, and the area's routes. Writing is in `file_writes.py`."""

from __future__ import annotations

from bulk.sandbox.areas.contents import downloads
from bulk.sandbox.areas.contents.file_writes import delete_file, put_file
from bulk.sandbox.areas.contents.files import FileView
from bulk.sandbox.git import repositories
from bulk.sandbox.git.repositories import Repositories
from bulk.sandbox.git.revision import Revision
from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.auth.rights import repository
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.context import Context
from bulk.sandbox.http.refusals import Refused, not_found
from bulk.sandbox.http.routes import Area, Route
from bulk.sandbox.store.records import Repository


async def get_contents(call: Call) -> Answer:
    """GET /repos/{owner}/{repo}/contents/{path}: a file, a symlink, a submodule or a directory.

    Raises:
        Refused: 404, nothing stands there, or nothing is called `ref`; 403, the file is too large for the media type.
    """
    found = repository(call)
    revision = wanted_revision(call, found)
    entry = revision.entry(call.params.get("path", ""))
    if entry is None:
        raise not_found()
    return await FileView(call, found, revision).answer(entry)


def wanted_revision(call: Call, found: Repository) -> Revision:
    """Return the files of the `ref` of a read; without one, of the default branch.

    Raises:
        Refused: 404.
    """
    ref = call.query.get("ref")
    revision = call.context.get(Repositories).revision(found, ref)
    if revision is not None:
        return revision
    if call.context.get(Repositories).is_empty(found):
        raise Refused(404, "This repository is empty.")
    raise Refused(404, f"No commit found for the ref {ref or found.default_branch}")


async def start(context: Context) -> None:
    """Open the repositories."""
    context.put(downloads.Downloads())
    repositories.start(context)


_WRITE = Access(scopes=("public_repo",), permission=("contents", "write"), hidden=True)
_PATH = "/repos/{owner}/{repo}/contents/{path...}"

AREA = Area(
    "Repository contents",
    (
        Route("GET", _PATH, get_contents, anonymous=True),
        Route("GET", "/repos/{owner}/{repo}/contents", get_contents, anonymous=True),
        Route("PUT", _PATH, put_file, access=_WRITE),
        Route("DELETE", _PATH, delete_file, access=_WRITE),
        downloads.ROUTE,
    ),
    start,
)
