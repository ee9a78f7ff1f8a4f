"""Files of a repository: read, write, delete. Writes of one repository go one at a time, the platform refuses overlaps.

The blob sha shows the content of a file: a write is not sent if the file is as asked for, and a read settles a write
whose answer was lost.
Source: specification, Repository contents; operations.md, GET, PUT and DELETE contents.
"""

from collections.abc import Generator, Iterator
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from bulk import urls
from bulk.capabilities import VOLATILE, FileError, ProvesAbsence, Returns, SavesContent, TakesFiles
from bulk.model import (
    RAW_BODY_BYTES,
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
from bulk.operation import Item, ItemFlaw, Settling, Steps
from bulk_jobs import accesses
from bulk_jobs.result_types import Contents, ContentsEntry, FileWritten
from bulk_jobs.shared import names
from bulk_jobs.shared.files import absence, blobs, file_proofs, file_reads, file_writes
from bulk_jobs.shared.files.file_writes import LARGEST, FileWrite, conflict, file_result, flaw_of_content, flaws_of_sha
from bulk_jobs.shared.files.path_state import Look, PathState, can_see, contents_url, is_surely_absent, look, unseen

_NOT_ALLOWED = "this credential may not delete it, or no such branch can be written"

FilePath = Annotated[
    str, Meta(min_length=1, description="path of the file from the root of the repository", examples=["docs/guide.md"])
]
CommitMessage = Annotated[str, Meta(min_length=1, description="message of the commit", examples=["Add CODEOWNERS"])]


class GetContentsItem(Item, frozen=True, kw_only=True):
    """Names a file or directory, and says in which form it is read."""

    owner: names.Owner
    repo: names.Repo
    path: Annotated[
        str,
        Meta(description="path from the root of the repository; without it the root", examples=["docs/guide.md"]),
    ] = ""
    ref: names.Ref | None = None
    media_type: file_reads.MediaType = "json"


class GetContents(
    SavesContent[GetContentsItem], ProvesAbsence[GetContentsItem], Returns[Contents | list[ContentsEntry]]
):
    """Read a file, or list a directory, of a repository.

    Requests:  1; for a file above 1 MB as json or object 2, or 4 where it changes in between, which a plan does not
               count, nor a second one for an empty file as raw or html. missing: ok: 1 more for each folder of it.
    Category:  core. Lane: none.
    Result:    the file object or the listing (exactly 1,000 entries: `maybe_truncated`); raw, html: `size`, `sha256`.
    Lost answer: a read is repeated.
    Source:    Repository contents, GET /repos/{owner}/{repo}/contents/{path}.
    """

    name = "contents.get"
    access = accesses.CONTENTS_READ
    Item = GetContentsItem
    result_is_reply = True
    list_keys: ClassVar = {"": "name", "entries": "name"}
    untabled = file_reads.UNTABLED
    example: ClassVar = {"owner": "acme-eng", "repo": "hello-world", "path": "README.md", "media_type": "raw"}

    def check(self, item: GetContentsItem) -> Iterator[ItemFlaw]:
        yield from names.flaws_of_repository(item.owner, item.repo)
        flaw = urls.flaw_of_path(item.path) if item.path else ""
        if flaw:
            yield ItemFlaw("path", flaw)
        flaw = names.flaw_of_text(item.ref) if item.ref is not None else ""
        if flaw:
            yield ItemFlaw("ref", flaw)

    def steps(self, item: GetContentsItem) -> Steps:
        path, known = contents_url(item.owner, item.repo, item.path), {"path": item.path}
        proof = file_proofs.of_content(file_proofs.of_place(item.owner, item.repo, item.path), is_root=not item.path)
        return file_reads.fetch(path, urls.query(ref=item.ref), item.media_type, known, proof, is_saving=self.is_saving)

    def steps_or_absent(self, item: GetContentsItem) -> Steps:
        return (
            yield from absence.of_content(
                item.owner, item.repo, item.path, item.ref, lambda: GetContents.steps(self, item)
            )
        )

    def saved_bytes(self, outcome: Outcome) -> bytes | None:
        return file_reads.saved_bytes(outcome)


class PutContentsItem(Item, frozen=True, kw_only=True):
    """Names a file, and gives its new content and the message of the commit."""

    owner: names.Owner
    repo: names.Repo
    path: FilePath
    message: CommitMessage
    content: Annotated[str, Meta(description="the file's bytes in Base64, at most 100 MB")] | None = None
    content_file: (
        Annotated[
            str,
            Meta(
                min_length=1, description="file whose bytes to send instead of `content`", examples=["files/CODEOWNERS"]
            ),
        ]
        | None
    ) = None
    sha: Annotated[names.BlobSha, Meta(description="blob that `mode: replace` replaces, and no other")] | None = None
    branch: names.Branch | None = None
    committer: (
        Annotated[names.DatedPerson, Meta(description="who commits; without it the user of the credential")] | None
    ) = None
    author: Annotated[names.DatedPerson, Meta(description="who wrote it; without it the committer")] | None = None
    mode: Annotated[
        Literal["ensure", "create", "replace"],
        Meta(
            description="ensure: the file ends up with this content, no commit where it has it already; create: fails "
            "where the file exists; replace: needs `sha`, fails where the file is another blob by now"
        ),
    ] = "ensure"
    if_exists: Annotated[
        Literal["fail", "unchanged"],
        Meta(
            description="what a file with the same content that exists already counts as for `mode: create`, where "
            "unchanged looks at it before, and for `mode: replace`, where it need not be the blob `sha` then"
        ),
    ] = "fail"


class PutContents(file_writes.OneFile[PutContentsItem], TakesFiles[PutContentsItem], Returns[FileWritten]):
    """Make one file of a repository hold the given content.

    Requests:  ensure: 1 where the file is already so (a read), 2 to write it. create: 1, and as ensure with
               `if_exists: unchanged`. replace: 2.
    Category:  core. Lane: the repository.
    Refused:   two items of a manifest that leave one file otherwise, unless `allow_overwrites` is true on the later
               item's job, or that job needs the other's.
    Result:    path, sha and size of the file, its page, and the commit.
    Lost answer: read the file: the new blob means applied, the one before means not applied, after another nobody
               knows.
    Source:    Repository contents, PUT /repos/{owner}/{repo}/contents/{path}.
    """

    name = "contents.put"
    Item = PutContentsItem
    is_read = False
    most_requests = 2
    file_fields: ClassVar = {"content_file": "content"}
    unreported = frozenset({"content"})
    volatile = VOLATILE | {"commit"}  # a write that was repeated makes none
    settled_by = (
        "The file is read: with the new blob the write was applied, with the blob from before it was not and is sent "
        "again. With any other blob, or without the file that was there, once the settle time is over, nobody knows "
        "whether it was applied before somebody else wrote: it ends as unknown, with what was found, and a retry does "
        "not overwrite that. That no file is there counts only while the root of the repository can be listed."
    )
    example: ClassVar = {
        "owner": "acme-eng",
        "repo": "hello-world",
        "path": "CODEOWNERS",
        "message": "Add CODEOWNERS",
        "content": "KiBAYWNtZS1lbmcvb3duZXJzCg==",
    }

    def check(self, item: PutContentsItem) -> Iterator[ItemFlaw]:
        yield from names.flaws_of_repository(item.owner, item.repo)
        if flaw := names.flaw_of_file(item.path):
            yield ItemFlaw("path", flaw)
        yield from names.flaws_of_commit(item.message, item.branch, item.committer, item.author)
        if (item.content is None) == (item.content_file is None):
            yield ItemFlaw("content", "expected exactly one of content and content_file")
        if item.content is not None:
            flaw = flaw_of_content(item.content)
            if flaw:
                yield ItemFlaw("content", flaw)
        if item.sha is not None or item.mode == "replace":
            yield from flaws_of_sha(item.sha, item.mode)
        if item.if_exists == "unchanged" and item.mode == "ensure":
            yield ItemFlaw("if_exists", "only modes create and replace fail where the file exists, and ensure does not")

    def with_file(self, item: PutContentsItem, field: str, data: bytes) -> PutContentsItem:
        if field not in self.file_fields:
            return super().with_file(item, field, data)
        if len(data) > RAW_BODY_BYTES:
            raise FileError(f"has {len(data):,} bytes; {LARGEST}")
        return msgspec.structs.replace(item, content=blobs.encode(data), content_file=None)

    def steps(self, item: PutContentsItem) -> Steps:
        return self.steps_after(item, None, 0.0)

    def steps_after(self, item: PutContentsItem, left: str | None, lag_s: float) -> Steps:
        content = blobs.decode(item.content or "")
        ours, text = blobs.blob_sha(content), blobs.on_one_line(item.content or "", content)
        before = item.sha.lower() if item.sha is not None else None
        if item.mode == "ensure" and left is not None and left != ours:
            before = left or None
        elif _looks(item, ours, before, left):
            found = yield from look(*_place(item), is_fresh=False, left=left, lag_s=lag_s)
            outcome = file_writes.without_write(item, ours, before, found)
            if outcome is not None:
                return outcome
            before = found.sha
        write = _write("PUT", item, before)
        proof = file_proofs.written(item.owner, item.repo, item.path, item.message, ours)
        reply = yield write.request(proof, content=text)
        if reply.status in (409, 422):
            found = yield from look(*_place(item), is_fresh=True)
            outcome = file_writes.after_refusal(item, ours, before, found, reply)
            if outcome is None and found.sha is not None and found.sha == before:
                outcome = yield from write.symlink_outcome()
            if outcome is not None:
                return outcome
            if item.mode == "ensure":
                write = _write("PUT", item, found.sha)
            reply = yield write.request(proof, is_last=True, content=text)
        return file_writes.written(item.path, ours, len(content), reply)

    def settle(self, item: PutContentsItem, lost: Lost) -> Settling:
        ours = blobs.blob_sha(blobs.decode(item.content or ""))
        before = lost.before if isinstance(lost.before, str) else None
        found = yield from look(*_place(item), is_fresh=True)
        if found.sha == ours:
            return succeeded(file_result(item.path, found), note="the answer was lost; the file was read and is so")
        if found.sha is not None and found.sha == before:
            return NotApplied("the file is still the blob from before")
        if not found.is_absent:
            return (yield from _write("PUT", item, before).third_value(found, lost, ours))
        # the root of any branch proves that the repository can be seen; without this branch nothing was applied either
        if not found.is_visible_absence and not (yield from can_see(item.owner, item.repo, None)):
            return Undecided("neither the file nor the root of its repository can be read", is_unseen=True)
        if before is None:
            return NotApplied("there is no such file")
        return (yield from _write("PUT", item, before).third_value(found, lost, ours))


class DeleteContentsItem(Item, frozen=True, kw_only=True):
    """Names a file to delete, and gives the message of the commit."""

    owner: names.Owner
    repo: names.Repo
    path: FilePath
    message: CommitMessage
    sha: (
        Annotated[names.BlobSha, Meta(description="blob to delete and no other; without it whatever is there")] | None
    ) = None
    branch: names.Branch | None = None
    committer: (
        Annotated[names.Person, Meta(description="who commits; without it the user of the credential")] | None
    ) = None
    author: Annotated[names.Person, Meta(description="who did it; without it the committer")] | None = None


class DeleteContents(file_writes.OneFile[DeleteContentsItem], Returns[FileWritten]):
    """Delete one file of a repository. One that is not there is unchanged.

    Requests:  2, or 1 where `sha` is given; 3 where there is nothing to delete.
    Category:  core. Lane: the repository.
    Refused:   a deletion after a write of the same file in a manifest, unless `allow_overwrites` is true on its
               job, or that job needs the other's.
    Result:    path and blob of what was deleted, and the commit.
    Lost answer: read the file: not there means applied, the blob from before means not applied, after another nobody
               knows.
    Source:    Repository contents, DELETE /repos/{owner}/{repo}/contents/{path}.
    """

    name = "contents.delete"
    Item = DeleteContentsItem
    is_read = False
    most_requests = 3
    settled_by = (
        "The file is read: where it is not there, and its folder is listed without it, it was deleted; with the "
        "blob from before it was not and is sent again; with any other blob, once the settle time is over, it ends as "
        "unknown, with what was found."
    )
    example: ClassVar = {
        "owner": "acme-eng",
        "repo": "hello-world",
        "path": "docs/guide.md",
        "message": "Delete the guide",
    }

    def check(self, item: DeleteContentsItem) -> Iterator[ItemFlaw]:
        yield from names.flaws_of_repository(item.owner, item.repo)
        if flaw := names.flaw_of_file(item.path):
            yield ItemFlaw("path", flaw)
        yield from names.flaws_of_commit(item.message, item.branch, item.committer, item.author)
        flaw = names.flaw_of_sha(item.sha) if item.sha is not None else ""
        if flaw:
            yield ItemFlaw("sha", flaw)

    def steps(self, item: DeleteContentsItem) -> Steps:
        return self.steps_after(item, None, 0.0)

    def steps_after(self, item: DeleteContentsItem, left: str | None, lag_s: float) -> Steps:
        before = item.sha.lower() if item.sha is not None else left or None
        if before is None:
            found = yield from _look_surely(item, is_fresh=False, left=left, lag_s=lag_s)
            outcome = yield from _without_delete(item, found, None)
            if outcome is not None:
                return outcome
            before = found.sha
        write = _write("DELETE", item, before)
        proof = file_proofs.deleted(item.owner, item.repo, item.branch, item.message)
        reply = yield write.request(proof)
        if reply.status == 409:
            found = yield from _look_surely(item)
            outcome = (yield from _without_delete(item, found, item.sha and before)) or file_writes.against_rules(reply)
            if outcome is None and found.sha == before:
                outcome = yield from write.symlink_outcome()
            if outcome is not None:
                return outcome
            write = _write("DELETE", item, found.sha)
            reply = yield write.request(proof, is_last=True)
        if reply.status == 404:
            found = yield from _look_surely(item)
            if found.is_absent:
                return (yield from _nothing_to_delete(item, found))
            return failed(ErrorCode.NOT_FOUND, f"{item.path} is there, and {_NOT_ALLOWED}", http_status=404)
        return file_writes.deleted(item.path, write.before, reply)

    def settle(self, item: DeleteContentsItem, lost: Lost) -> Settling:
        before = lost.before if isinstance(lost.before, str) else None
        found = yield from _look_surely(item)
        if found.sha is not None and found.sha == before:
            return NotApplied("the file is still there")
        if not found.is_absent:
            return (yield from _write("DELETE", item, before).third_value(found, lost, None))
        if not found.is_visible_absence and not (yield from is_surely_absent(*_place(item))):
            return Undecided(unseen(item.path), is_unseen=True)
        return succeeded({"path": item.path, "sha": before}, note="the answer was lost; the file is gone")


def _place(item: PutContentsItem | DeleteContentsItem) -> tuple[str, str, str, str | None]:
    return item.owner, item.repo, item.path, item.branch


def _write(method: str, item: PutContentsItem | DeleteContentsItem, before: str | None) -> FileWrite:
    return FileWrite(
        method=method,
        owner=item.owner,
        repo=item.repo,
        path=item.path,
        message=item.message,
        branch=item.branch,
        committer=item.committer,
        author=item.author,
        before=before,
    )


def _looks(item: PutContentsItem, ours: str, before: str | None, left: str | None) -> bool:
    """Return whether the file is read before it is written; `left`: the blob that this run has left there."""
    if item.mode == "replace":
        return left is None or left != before or before == ours
    return item.mode == "ensure" or item.if_exists == "unchanged"


def _look_surely(
    item: DeleteContentsItem, *, is_fresh: bool = True, left: str | None = None, lag_s: float = 0.0
) -> Look:
    """Return the state of the path, after two looks where nothing is there: a single 404 says too little."""
    found = yield from look(*_place(item), is_fresh=is_fresh, left=left, lag_s=lag_s)
    if found.is_absent and not found.is_visible_absence:
        found = yield from look(*_place(item), is_fresh=True)
    return found


def _without_delete(
    item: DeleteContentsItem, found: PathState, wanted: str | None
) -> Generator[Request, Reply, Outcome | None]:
    """Return the outcome of the item if no deletion has to be sent, else None; `wanted`: delete only this blob."""
    if found.is_absent:
        return (yield from _nothing_to_delete(item, found))
    if found.obstacle:
        return conflict(f"{item.path} is {found.obstacle}, which can't be deleted as a file")
    if wanted is not None and found.sha != wanted:
        return conflict(f"{item.path} {found.now}, not {wanted}")
    return None


def _nothing_to_delete(item: DeleteContentsItem, found: PathState) -> Steps:
    if found.is_visible_absence or (yield from is_surely_absent(*_place(item))):
        return unchanged({"path": item.path}, note="there is no such file")
    return failed(ErrorCode.NOT_FOUND, unseen(item.path), http_status=404)
