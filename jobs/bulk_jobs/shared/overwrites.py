"""Conflicts between two items of a manifest that decide about the same thing; looked for before anything is sent."""

from typing import Any

from bulk.capabilities import ComparesState, Conflict, Irreversible, LooksFirst, Undo, Undoable
from bulk.model import SUCCESSFUL, Outcome
from bulk.operation import ItemT, Steps
from bulk_jobs import accesses
from bulk_jobs.shared.files import file_undo
from bulk_jobs.shared.files.file_looks import look_first


class OneFile(ComparesState[ItemT], LooksFirst[ItemT], Undoable[ItemT]):
    """A write of one file. Items have owner, repo, path and branch."""

    access = accesses.CONTENTS_WRITE

    def lanes(self, item: Any) -> tuple[str, ...]:
        return (f"{item.owner}/{item.repo}",)

    def identities(self, item: Any) -> tuple[str, ...]:
        return (f"{item.owner}/{item.repo}".casefold() + f":{item.branch or ''}:{item.path}",)

    def conflict(self, earlier: object, later: Any) -> Conflict | None:
        """Return the conflict of two changes that leave different contents: only the last one would be seen."""
        if _content(earlier) == _content(later):
            return None
        does = "writes" if hasattr(later, "content") else "deletes"
        did = "writes otherwise" if hasattr(earlier, "content") else "deletes"
        return Conflict(f"{does} the file that {{other}} {did}; leave one of them out", may_insist=True)

    def left(self, item: Any, outcome: Outcome) -> str | None:
        """Return the blob that the item has left; empty where it has deleted the file; None where neither is known."""
        if outcome.kind not in SUCCESSFUL:
            return None
        if not hasattr(item, "content"):
            return ""
        sha = outcome.result.get("sha") if isinstance(outcome.result, dict) else None
        return sha.lower() if isinstance(sha, str) else None

    def steps_to_look(self, item: Any) -> Steps:
        if getattr(item, "mode", "") == "ensure":
            return look_first(item, lambda sha: self.steps_after(item, sha or "", 0.0))
        is_blind = item.sha is not None or hasattr(item, "content")
        return look_first(item, lambda _: self.steps(item)) if is_blind else self.steps(item)

    def undo(self, item: Any, before: Any, result: Any) -> Undo | Irreversible:
        is_write = hasattr(item, "content")
        return (file_undo.of_write if is_write else file_undo.of_deletion)(item, before, result)


def _content(item: Any) -> tuple[str | None, str | None]:
    return getattr(item, "content", None), getattr(item, "content_file", None)


def of_organizations(earlier: object, later: object) -> Conflict | None:
    """Return the conflict of two creations or renames that use the same name. A rename that frees the name for a later
    item is no conflict; the reverse is one.
    """
    made_before, made = _made(earlier), _made(later)
    left_before, left = getattr(earlier, "org", ""), getattr(later, "org", "")
    if made_before.casefold() == made.casefold():
        if made_before != made:
            return Conflict(f"{made!r} and {made_before!r} of {{other}} are one name: case does not matter")
        return Conflict(f"makes an organization {made!r}, as {{other}} does otherwise")
    if left and left_before.casefold() == left.casefold():
        return Conflict(f"renames {left!r}, which {{other}} renames to {made_before!r}")
    if left and left_before and made_before.casefold() == left.casefold():
        if left_before.casefold() == made.casefold():
            return Conflict(
                f"goes in a circle: {{other}} renames {made!r} to {left!r}, and this one renames it back; "
                "names are exchanged through a third name, in runs of their own"
            )
        return Conflict(
            f"renames {left!r}, the name that {{other}} gives to {left_before!r}: a chain of renames begins at its "
            "free end, so put this item before that one; names that go in a circle need a free one, in a run of its own"
        )
    return None


def _made(item: object) -> str:
    return str(getattr(item, "login", ""))
