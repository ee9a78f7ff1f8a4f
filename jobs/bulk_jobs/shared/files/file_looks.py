"""What a write of a file would meet: for who only looks.

It may name the blob that it replaces, or that none is there, and then it does not look by itself. Nor has it to know
whether a repository can be seen in which a file is not there, because the platform refuses the write; a plan has to.
"""

from collections.abc import Callable
from typing import Any

from bulk.model import ErrorCode, failed, unchanged
from bulk.operation import Steps
from bulk_jobs.shared.files import blobs
from bulk_jobs.shared.files.file_writes import conflict
from bulk_jobs.shared.files.path_state import can_see, look, unseen


def look_first(item: Any, steps: Callable[[str | None], Steps]) -> Steps:
    """Return a read, and behind it `steps` of the blob that is there, or None; they are not begun where they would be
    refused, or where the file is as the item wants it. `item`: one of contents.put or contents.delete."""
    is_write = hasattr(item, "content")
    found = yield from look(item.owner, item.repo, item.path, item.branch, is_fresh=False)
    if found.obstacle:
        return conflict(f"{item.path} is {found.obstacle}, and no file")
    is_seen = not found.is_absent or found.is_visible_absence
    if not is_seen and not (yield from can_see(item.owner, item.repo, item.branch)):
        return failed(ErrorCode.NOT_FOUND, unseen(item.path), http_status=404)
    ours = blobs.blob_sha(blobs.decode(item.content or "")) if is_write else None
    before = item.sha.lower() if item.sha is not None else None
    if found.sha == ours:
        return unchanged({"path": item.path})
    if found.sha != before and getattr(item, "mode", "") != "ensure":
        return conflict(f"{item.path} {found.now}" + (f", not {before}" if before is not None else ""))
    return (yield from steps(found.sha))
