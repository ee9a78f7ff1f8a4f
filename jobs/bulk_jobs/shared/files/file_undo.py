"""The undo of a write of a file, with the blob that the run has left as the precondition.

The bytes from before are not kept: the answer of the write names the commit before it, and the file can be read at that
commit as long as the branch's history stands. File modes and the history itself do not come back.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from bulk.model import UNSEEN
from bulk.undo import FileBefore, Irreversible, Undo

_PERHAPS_THERE = "its answer was lost, and a file with the same bytes may have been there before, unseen"
_NOT_LOOKED = "what was there before is not known"


def of_write(item: Any, before: Any, result: Any) -> Undo | Irreversible:
    """Return the undo of a write that made a file or changed its content."""
    if before is UNSEEN or not isinstance(result, dict) or not isinstance(result.get("sha"), str):
        return Irreversible(_NOT_LOOKED)
    fields = {**_place(item), "sha": result["sha"]}
    if before is None:
        is_made = isinstance(result.get("commit"), dict)
        return Undo(operation="contents.delete", item=fields) if is_made else Irreversible(_PERHAPS_THERE)
    return _with_bytes(item, {**fields, "mode": "replace", "if_exists": "unchanged"}, before, result)


def of_deletion(item: Any, before: Any, result: Any) -> Undo | Irreversible:
    """Return the undo of the deletion of a file."""
    if not isinstance(before, str) or not isinstance(result, dict):
        return Irreversible(_NOT_LOOKED)
    return _with_bytes(item, {**_place(item), "mode": "create", "if_exists": "unchanged"}, before, result)


def joined(way: Undo, later: Undo) -> Sequence[Undo]:
    """Return what takes back two changes of a file; nothing where the later one has left what was there before both."""
    left, before = later.item.get("sha"), _blob(way)
    if _blob(later) != way.item.get("sha"):
        return [later, way]
    if left == before:
        return []
    fields = {name: value for name, value in way.item.items() if name != "sha"}
    if left is not None:
        fields["sha"] = left
    if before is not None:
        fields["mode"] = "create" if left is None else "replace"
    return [msgspec.structs.replace(way, item=fields)]


def _blob(way: Undo) -> str | None:
    """Return the blob that an undo gives back; None: it removes the file."""
    return way.file.blob_sha if way.file is not None else None


def _with_bytes(item: Any, fields: dict[str, Any], before: str, result: dict[str, Any]) -> Undo:
    commit = result.get("commit")
    parent = commit.get("parent") if isinstance(commit, dict) else None
    is_dated = isinstance(parent, str)
    file = FileBefore(
        field="content_file",
        operation="contents.get",
        item={"owner": item.owner, "repo": item.repo, "path": item.path, "media_type": "raw"}
        | ({"ref": parent} if is_dated else {}),
        owner_field="owner",
        history=f"{item.owner}/{item.repo}:{item.branch or ''}".casefold(),
        blob_sha=before,
        is_dated=is_dated,
    )
    return Undo(operation="contents.put", item=fields, file=file)


def _place(item: Any) -> dict[str, Any]:
    place = {"owner": item.owner, "repo": item.repo, "path": item.path, "message": f"Undo: {item.message}"}
    return {**place, "branch": item.branch} if item.branch is not None else place
