"""Repository contents: writing files. Each write is one commit on one branch.

Two writes of one repository never overlap: while a write is being worked on, the request's latency included, another
one is 409. The checks are, in this order: the caller's rights, the branch, the path and the body; then, as the only
writer of the repository, the entry at the path and its sha.

Source: the specification's "Repository contents"; where that is silent, the decisions of the open points.
"""

from __future__ import annotations

import base64
from contextlib import AbstractAsyncContextManager
from functools import partial

from bulk.sandbox.areas.contents.file_requests import FileRequest, branch_name, content_bytes, required_sha
from bulk.sandbox.areas.contents.files import INLINE_BYTES, LARGEST_BYTES, FileView
from bulk.sandbox.areas.webhooks import deliveries, hook_payloads
from bulk.sandbox.clock import iso
from bulk.sandbox.git.repositories import Repositories
from bulk.sandbox.git.repository import Change, GitRepository
from bulk.sandbox.git.revision import CommitRecord, Entry, Kind, Person, WriteConflict, path_fault
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.auth.rights import SCOPED_KINDS, has_permission, has_scope, repository
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.refusals import Refused, conflict, invalid, not_found
from bulk.sandbox.store.records import Repository, Token

WORKFLOWS = ".github/workflows/"


async def put_file(call: Call) -> Answer:
    """PUT /repos/{owner}/{repo}/contents/{path}: write these bytes to a file; 201 where the file is new, else 200.

    Raises:
        Refused: 404, the branch or the right is missing; 422, the body or the path is wrong, or a file is there and
            no sha was given; 409, the sha is not that of the file, or another write is in progress.
    """
    target, branch, body = _target(call)
    asked = FileRequest.read(body, call.caller, call.now)
    is_large = len(call.raw) > INLINE_BYTES
    data = await call.context.blocking(partial(content_bytes, body)) if is_large else content_bytes(body)
    if len(data) > LARGEST_BYTES:
        raise invalid(message="The file is larger than 100 MB.")
    async with _alone(call, target):
        git = call.context.get(Repositories).git(target)
        before = _entry_at(git, branch, call.params["path"])
        if before is not None:
            _compare(before, required_sha(asked))
        commit = await _commit(call, git, branch, asked, Change(data))
        return _answer(call, target, git, branch, commit, 201 if before is None else 200)


async def delete_file(call: Call) -> Answer:
    """DELETE /repos/{owner}/{repo}/contents/{path}: remove a file, and the directories that become empty. 200.

    Raises:
        Refused: 404, the file, the branch or the right is missing; 422, the body or the path is wrong; 409, the
            sha is not that of the file, or another write is in progress.
    """
    target, branch, body = _target(call)
    asked = FileRequest.read(body, call.caller, call.now)
    sha = required_sha(asked)
    async with _alone(call, target):
        git = call.context.get(Repositories).git(target)
        before = _entry_at(git, branch, call.params["path"])
        if before is None:
            raise not_found()
        _compare(before, sha)
        commit = await _commit(call, git, branch, asked, None)
        return _answer(call, target, git, branch, commit, 200)


def _target(call: Call) -> tuple[Repository, str, dict[str, object]]:
    """Return the repository, the branch and the body of a write, as far as they can be judged without looking at
    files."""
    target = repository(call, write=True)
    path = call.params["path"]
    if call.token is not None and path.lower().startswith(WORKFLOWS) and not _may_change_workflows(call.token):
        raise Refused(
            404, "Not Found: files in the workflows folder need the workflow scope (or the permission workflows)"
        )
    body = call.json_object()
    branch = branch_name(body) or target.default_branch
    repositories = call.context.get(Repositories)
    if not repositories.has_branch(target, branch) and not (
        branch == target.default_branch and repositories.is_empty(target)
    ):
        raise Refused(404, f"Branch {branch} not found")
    fault = path_fault(path)
    if fault is not None:
        raise invalid(message=fault)
    return target, branch, body


def _may_change_workflows(token: Token) -> bool:
    if token.kind in SCOPED_KINDS:
        return has_scope(token, "workflow")
    return has_permission(token, "workflows", "write")


def _alone(call: Call, target: Repository) -> AbstractAsyncContextManager[None]:
    return call.writing(("contents", target.id), conflict("Another write to this repository is in progress"))


def _entry_at(git: GitRepository, branch: str, path: str) -> Entry | None:
    """Return the entry at a path that shall be written.

    Raises:
        Refused: 422, the entry is not a file.
    """
    revision = git.revision(f"refs/heads/{branch}")
    entry = revision.entry(path) if revision else None
    if entry is not None and entry.kind in (Kind.DIRECTORY, Kind.SUBMODULE):
        raise invalid(message=f"{path} is a {'directory' if entry.kind is Kind.DIRECTORY else 'submodule'}")
    return entry


def _compare(before: Entry, sha: str) -> None:
    if sha.lower() != before.sha:
        raise conflict(f"{before.path} does not match {sha}")


async def _commit(
    call: Call, git: GitRepository, branch: str, asked: FileRequest, change: Change | None
) -> CommitRecord:
    work = partial(git.commit, branch, {call.params["path"]: change}, asked.message, asked.author, asked.committer)
    try:
        if change is not None and len(change.data) > INLINE_BYTES:
            return await call.context.blocking(work)
        return work()
    except WriteConflict as refused:
        raise invalid(message=str(refused)) from None


def _answer(
    call: Call, target: Repository, git: GitRepository, branch: str, commit: CommitRecord, status: int
) -> Answer:
    revision = git.revision(branch)
    path = call.params["path"]
    entry = revision.entry(path) if revision else None
    change = "removed" if entry is None else "added" if status == 201 else "modified"
    deliveries.announce(
        call.context,
        target.organization_id,
        "push",
        lambda: hook_payloads.push(call, target, branch, commit, path, change),
    )
    view = FileView(call, target, revision) if revision else None
    full_name = call.context.state.full_name(target)
    return Answer(
        status,
        body={
            "content": view.described(entry) if view and entry else None,
            "commit": _shown_commit(call, target, full_name, commit),
        },
        effect=f"commit {full_name} {path} {commit.sha}",
    )


def _shown_commit(call: Call, target: Repository, full_name: str, commit: CommitRecord) -> dict[str, object]:
    api, site = f"{call.base_url}/repos/{full_name}/git", f"{call.site_url}/{full_name}"
    return {
        "sha": commit.sha,
        "node_id": base64.b64encode(f"06:Commit{target.id}:{commit.sha}".encode()).decode(),
        "url": f"{api}/commits/{commit.sha}",
        "html_url": f"{site}/commit/{commit.sha}",
        "author": _shown_person(commit.author),
        "committer": _shown_person(commit.committer),
        "message": commit.message,
        "tree": {"sha": commit.tree, "url": f"{api}/trees/{commit.tree}"},
        "parents": [
            {"sha": sha, "url": f"{api}/commits/{sha}", "html_url": f"{site}/commit/{sha}"} for sha in commit.parents
        ],
        "verification": {
            "verified": False,
            "reason": "unsigned",
            "signature": None,
            "payload": None,
            "verified_at": None,
        },
    }


def _shown_person(person: Person) -> dict[str, str]:
    return {"date": iso(person.at), "name": person.name, "email": person.email}
