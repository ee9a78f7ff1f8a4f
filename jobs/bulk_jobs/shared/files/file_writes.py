"""The write of one file: its request, and the meaning of its answer, its refusal or the loss of its answer.

A refused write is judged by the present state of the path, not by the platform's message, which is for people. A write
does not look by itself where its item names the blob that it replaces, or says that there is none. Nor does it check
whether the repository of a missing file can be seen, because the platform refuses the write otherwise; a plan, which
only reads, has to do both first.
Source: specification, Repository contents; operations.md, PUT and DELETE contents; failures.md row 22.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import msgspec

from bulk.capabilities import ComparesState, Conflict, LooksFirst
from bulk.model import (
    RAW_BODY_BYTES,
    SUCCESSFUL,
    Effect,
    ErrorCode,
    Lost,
    NotApplied,
    Outcome,
    Reply,
    Request,
    Undecided,
    failed,
    succeeded,
    unchanged,
)
from bulk.operation import ItemFlaw, ItemT, Steps
from bulk.proof import Proof
from bulk.undo import Irreversible, Undo, Undoable
from bulk_jobs import accesses
from bulk_jobs.shared import names, refusals
from bulk_jobs.shared.files import blobs, file_undo
from bulk_jobs.shared.files.path_state import PathState, can_see, contents_url, link_sha, look, unseen

LARGEST = "the platform takes at most 100 MB"

_ACCEPT = {"PUT": frozenset((200, 201, 409, 422)), "DELETE": frozenset((200, 404, 409))}
_LAST_ACCEPT = {"PUT": frozenset((200, 201)), "DELETE": frozenset((200, 404))}


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

    def joined(self, way: Undo, later: Undo) -> Sequence[Undo]:
        return file_undo.joined(way, later)


class FileWrite(msgspec.Struct, frozen=True, kw_only=True):
    """One write of one file, with the fields that both of its operations have.

    Attributes:
        before: the blob that is there now, by the latest read or by the user; None: there is no file.
    """

    method: str
    owner: str
    repo: str
    path: str
    message: str
    branch: str | None
    committer: names.Person | None
    author: names.Person | None
    before: str | None

    def request(self, proof: Proof, *, is_last: bool = False, **fields: Any) -> Request:
        """Return the request of the write.

        Args:
            proof: the proof of an answer of success.
            is_last: whether a refusal (409, 422) goes to the engine, which waits and starts over a limited number of
                times; otherwise the operation looks into it, because another write may have caused it.
        """
        body: dict[str, Any] = {"message": self.message, **fields}
        if self.branch is not None:
            body["branch"] = self.branch
        if self.committer is not None:
            body["committer"] = msgspec.to_builtins(self.committer)
        if self.author is not None:
            body["author"] = msgspec.to_builtins(self.author)
        if self.before is not None:
            body["sha"] = self.before
        return Request(
            method=self.method,
            path=contents_url(self.owner, self.repo, self.path),
            body=body,
            effect=Effect.COMPARE_AND_SWAP,
            accept=(_LAST_ACCEPT if is_last else _ACCEPT)[self.method],
            before=self.before,
            proof=proof,
        )

    def symlink_outcome(self) -> Generator[Request, Reply, Outcome | None]:
        """Return the outcome if the path is a symlink; None where it is not one.

        The refused sha may be right then, because it is the blob of the file that the symlink leads to.
        """
        own = yield from link_sha(self.owner, self.repo, self.path, self.branch)
        if own is None:
            return None
        message = f"{self.path} is a symlink: name the file that it leads to, or as sha its own blob {own}"
        return failed(ErrorCode.CONFLICT, message, gives_codes=True)

    def third_value(
        self, found: PathState, lost: Lost, wanted: str | None
    ) -> Generator[Request, Reply, NotApplied | Undecided]:
        """Judge a lost write after which the path has neither the state from before nor the one that was asked for.

        The write may have been applied before somebody else wrote, or not at all.

        Args:
            wanted: the blob that was to be there; None: no file was to be there.
        """
        if (
            self.before is not None
            and not found.is_absent
            and (yield from link_sha(self.owner, self.repo, self.path, self.branch)) == self.before
        ):
            return NotApplied("the symlink from before is still there")
        came = f"the answer of the {lost.method} was lost"
        if lost.status is not None and lost.status >= 300:
            came = f"the {lost.method} was answered {lost.status}"
        now = "gone" if found.is_absent else f"now {found.obstacle or f'the blob {found.sha}'}"
        return Undecided(
            f"{came}, and {self.path} is {now}: whether it was done before somebody else wrote can't be told",
            found={"wanted": wanted, "before": self.before, "found": found.sha or found.obstacle or None},
        )


def without_write(item: Any, ours: str, before: str | None, found: PathState) -> Outcome | None:
    """Return the outcome of an item of contents.put if no write has to be sent; None: a write has to be sent."""
    if found.obstacle:
        return conflict(f"{item.path} is {found.obstacle}, which can't be written as a file")
    if item.mode == "replace" and found.sha != before and (found.sha != ours or item.if_exists == "fail"):
        return conflict(f"{item.path} {found.now}, not {before}")
    if item.mode == "create" and found.sha not in (None, ours):
        return conflict(f"{item.path} exists already, as the blob {found.sha}")
    return unchanged(file_result(item.path, found)) if found.sha == ours else None


def after_refusal(item: Any, ours: str, before: str | None, found: PathState, reply: Reply) -> Outcome | None:
    """Return the outcome of an item of contents.put after a 409 or 422, by the present state of the path; None: another
    write got in the way."""
    if found.obstacle:
        return conflict(f"{item.path} is {found.obstacle}, which can't be written as a file", reply)
    if found.sha == ours and (item.mode == "ensure" or item.if_exists == "unchanged"):
        return unchanged(file_result(item.path, found), note="another write made it so in the meantime")
    if item.mode == "create" and found.sha is not None:
        return conflict(f"{item.path} exists already, as the blob {found.sha}", reply)
    if item.mode == "replace" and found.sha != before:
        return conflict(f"{item.path} {found.now}, not {before}", reply)
    if reply.status == 422 and found.sha == before:
        return refusals.refused(reply)
    return against_rules(reply)


def written(path: str, ours: str, size_bytes: int, reply: Reply) -> Outcome:
    """Return the outcome of a write, with the useful part of the platform's file write result."""
    content = reply.body["content"]
    result = {
        "path": path,
        "sha": ours,
        "size": content.get("size", size_bytes),
        "html_url": content.get("html_url"),
        "commit": _commit(reply),
    }
    return succeeded(result)


def deleted(path: str, before: str | None, reply: Reply) -> Outcome:
    """Return the outcome of a deletion, with the useful part of the answer."""
    return succeeded({"path": path, "sha": before, "commit": _commit(reply)})


def file_result(path: str, found: PathState) -> dict[str, Any]:
    """Return the result for a file that was only read."""
    return {"path": path, "sha": found.sha, "size": found.size, "html_url": found.html_url}


def flaw_of_content(text: str) -> str:
    """Return why Base64 text can't be the content of a file; empty where it can."""
    try:
        size_bytes = len(blobs.decode(text))
    except ValueError as flaw:
        return f"expected Base64: plain text goes into a file that content_file names ({flaw})"
    return f"has {size_bytes:,} bytes; {LARGEST}" if size_bytes > RAW_BODY_BYTES else ""


def conflict(message: str, reply: Reply | None = None) -> Outcome:
    """Return the outcome of an item that does not find the state that it expects."""
    return failed(ErrorCode.CONFLICT, message, http_status=reply.status if reply is not None else None)


def against_rules(reply: Reply) -> Outcome | None:
    """Return the outcome of a write that rules of the repository refuse, however often it is sent; None where it was
    refused for another reason."""
    if not refusals.is_against_rules(reply):
        return None
    return failed(ErrorCode.CONFLICT, refusals.message_of(reply), http_status=reply.status, gives_codes=True)


def _commit(reply: Reply) -> dict[str, Any]:
    commit = reply.body["commit"]
    shown = {"sha": commit["sha"], "html_url": commit.get("html_url")}
    parents = commit.get("parents")
    first = parents[0] if isinstance(parents, list) and parents else None
    return {**shown, "parent": first["sha"]} if isinstance(first, dict) and isinstance(first.get("sha"), str) else shown


def flaws_of_sha(sha: str | None, mode: str) -> Iterator[ItemFlaw]:
    """Yield what is wrong with `sha`, the blob that a write in this mode shall replace."""
    if sha is None:
        if mode == "replace":
            yield ItemFlaw("sha", "expected the blob to be replaced, because mode is replace")
    elif mode != "replace":
        yield ItemFlaw("sha", f"only mode: replace compares it, and mode {mode} does not; leave it out or change mode")
    else:
        flaw = names.flaw_of_sha(sha)
        if flaw:
            yield ItemFlaw("sha", flaw)


def _content(item: Any) -> tuple[str | None, str | None]:
    return getattr(item, "content", None), getattr(item, "content_file", None)


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
