"""What a write of a file would meet that names the blob that it replaces, or that none is there: for who only looks."""

from typing import Any

from bulk.model import ErrorCode, Outcome, failed, unchanged
from bulk.operation import Steps
from bulk_jobs.shared.files import blobs
from bulk_jobs.shared.files.file_writes import conflict
from bulk_jobs.shared.files.path_state import can_see, look


def look_first(item: Any, steps: Steps) -> Steps:
    """Return `steps` with a read before them, after which they are not begun where they would be refused, or where the
    file is as the item wants it. `item`: one of contents.put or contents.delete."""
    is_write = hasattr(item, "content")
    found = yield from look(item.owner, item.repo, item.path, item.branch, is_fresh=False)
    if found.obstacle:
        return conflict(f"{item.path} is {found.obstacle}, and no file")
    ours = blobs.blob_sha(blobs.decode(item.content or "")) if is_write else None
    before = item.sha.lower() if item.sha is not None else None
    if found.sha == ours:
        is_seen = is_write or found.is_visible_absence or (yield from can_see(item.owner, item.repo, item.branch))
        return unchanged({"path": item.path}) if is_seen else _unseen(item)
    if found.sha != before:
        return conflict(f"{item.path} {found.now}" + (f", not {before}" if before is not None else ""))
    return (yield from steps)


def _unseen(item: Any) -> Outcome:
    return failed(ErrorCode.NOT_FOUND, f"neither {item.path} nor the root of its branch can be read", http_status=404)
