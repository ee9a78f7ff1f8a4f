"""The look before a write of a file, for a plan, which only reads.

A write does not look by itself where its item names the blob that it replaces, or says that there is none. Nor does it
check whether the repository of a missing file can be seen, because the platform refuses the write otherwise; a plan has
to do both.
"""

from collections.abc import Callable
from typing import Any

from bulk.model import ErrorCode, failed, unchanged
from bulk.operation import Steps
from bulk_jobs.shared.files import blobs
from bulk_jobs.shared.files.file_writes import conflict
from bulk_jobs.shared.files.path_state import can_see, look, unseen


def look_first(item: Any, steps: Callable[[str | None], Steps]) -> Steps:
    """Read the file of an item, and go on with `steps`.

    The steps are not begun if the write would be refused, or if the file is as the item wants it.

    Args:
        item: an item of contents.put or contents.delete.
        steps: takes the blob that is there, or None, and returns the further steps.
    """
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
