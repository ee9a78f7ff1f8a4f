"""How the writes of an operation are taken back: by an item of an operation, or not at all."""

from collections.abc import Sequence
from typing import Any

import msgspec

from bulk.operation import ItemT, Operation


class FileBefore(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that an undoing item sends, and where they can be read while `bulk undo` writes the manifest.

    Attributes:
        field: field of the undoing item that names the file with the bytes.
        operation: the read that gives the bytes as its payload, and the fields of its `item`.
        owner_field: field of that item that names the owner of the bytes: the run may have renamed the owner since.
        history: files with the same history are in the same commits. is_dated: whether `item` names a commit: if not,
            that of another file is used, if the bytes are there too.
        blob_sha: git's blob name of the bytes (40 hexadecimal digits): other bytes are not accepted for them.
    """

    field: str
    operation: str
    item: dict[str, Any]
    owner_field: str
    history: str
    blob_sha: str
    is_dated: bool = True


class Undo(msgspec.Struct, frozen=True, kw_only=True):
    """What takes an item back.

    Attributes:
        operation: name of the operation that does so, and the fields of its `item`, with the preconditions.
        loses: what does not come back, such as `its secret`; empty: nothing is lost.
        file: bytes that belong to the item.
        renamed: the name that a thing had before, and the name that it has until this is taken back.
        comes_anew: the thing comes back under another number, so that earlier changes to it can't be taken back too.
    """

    operation: str
    item: dict[str, Any]
    loses: str = ""
    file: FileBefore | None = None
    renamed: tuple[str, str] | None = None
    comes_anew: bool = False


class Irreversible(msgspec.Struct, frozen=True):
    """Why an item can't be taken back. `removes`: the thing that it changed is gone, with all earlier changes to it."""

    why: str
    removes: bool = False


class Undoable(Operation[ItemT]):
    """An operation whose writes can be taken back: their before-images are kept in the ledger, for `bulk undo`."""

    def undo(self, item: ItemT, before: Any, result: Any) -> Undo | Irreversible:
        """Return what takes back an item that has succeeded.

        Args:
            item: the item as the results show it, without secrets and `unreported` fields.
            before: `Request.before` of its write, or UNSEEN.
            result: result of its outcome: what the item left is the precondition, so that no later change is lost.
        """
        raise TypeError(f"{type(self).__name__} can be undone and lacks undo()")

    def before_both(self, item: ItemT, first: Any, later: Any) -> Any:
        """Return what was there before two writes of an item: `first` and `later` are their before-images, and what is
        as asked for in the later one may be a part that the first write has done."""
        return later

    def joined(self, way: Undo, later: Undo) -> Sequence[Undo]:
        """Return what takes back two changes of one thing: as few items as will do, in the order in which they run.

        One item for both restores what was there before the earlier change, and expects what the later one has left.
        Where the later one did not find what the earlier one had left, somebody else has changed it in between, and
        both items stay.

        Args:
            way: the item that takes back the earlier change, which was one of this operation.
            later: the item that takes back the next change of the thing in the run, by any operation on its resource.
        """
        return [later, way]
