"""Repository contents: reading files and directories, and the area's routes. Writing is in `file_writes.py`."""

from __future__ import annotations

from bulk.sandbox import downloads, repositories
from bulk.sandbox.access import Access
from bulk.sandbox.answers import Answer
from bulk.sandbox.call import Call
from bulk.sandbox.context import Context
from bulk.sandbox.file_writes import delete_file, put_file
from bulk.sandbox.files import FileView
from bulk.sandbox.records import Repository
from bulk.sandbox.refusals import Refused, not_found
from bulk.sandbox.repositories import Repositories
from bulk.sandbox.revision import Revision
from bulk.sandbox.rights import repository
from bulk.sandbox.routes import Area, Route


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
    """The files of the `ref` of a read; without one, of the default branch.

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
