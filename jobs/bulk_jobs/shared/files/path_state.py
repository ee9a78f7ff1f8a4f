"""The state of a path of a repository, as writes need to know it: nothing, a file with its blob, or another thing.

It is read in the object form, which has sha and size of files up to 100 MB and one shape for directories. A 404 alone
does not prove absence, because it also means that there is no such repository or branch, or no permission: a canary
must be readable as well. Source: operations.md, 404 rule.
"""

from collections.abc import Generator
from typing import Any

import msgspec

from bulk import urls
from bulk.model import Media, Reply, Request
from bulk_jobs.shared import refusals
from bulk_jobs.shared.files import file_proofs

_FOUND_OR_NOT = frozenset((200, 404))
LAG_PAUSE_FIRST_S = 1.0
"""The pause before the second read of a path that a lagging copy of the platform may not show yet (seconds)."""


class PathState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a path, as one read showed it.

    Attributes:
        sha: blob of the file; None where there is no file.
        obstacle: the thing that is there instead of a file and can't be written as one, such as `a directory`; else
            empty.
        size: the size of the file (bytes); None where the platform did not tell.
        html_url: its page, where the platform named one.
        missed: the answer, where it was a 404.
    """

    sha: str | None = None
    obstacle: str = ""
    size: int | None = None
    html_url: str | None = None
    missed: Reply | None = None

    @property
    def is_absent(self) -> bool:
        """Whether nothing is there, as far as a 404 can tell."""
        return self.sha is None and not self.obstacle

    @property
    def is_visible_absence(self) -> bool:
        """Whether the 404 itself proved that the repository can be seen (because it is empty)."""
        return self.missed is not None and refusals.is_empty_repository(self.missed)

    @property
    def now(self) -> str:
        """The state in words, for messages: the blob of the file, or that there is none."""
        return "is not there" if self.sha is None else f"is the blob {self.sha}"


Look = Generator[Request, Reply, PathState]


def look(
    owner: str,
    repo: str,
    path: str,
    branch: str | None,
    *,
    is_fresh: bool,
    left: str | None = None,
    lag_s: float = 0.0,
) -> Look:
    """Read the state of `path`; reads after a write must be `is_fresh`.

    Args:
        left: the blob that an item of this run has just left there (empty: no file). If a read shows another state, a
            copy of the platform may lag: that state is believed only after `lag_s`.
        lag_s: how long to repeat such a read (seconds).
    """
    for pause_s in _pauses_s(lag_s):
        reply = yield Request(
            method="GET",
            path=contents_url(owner, repo, path),
            query=urls.query(ref=branch),
            media=Media.OBJECT,
            accept=_FOUND_OR_NOT,
            is_fresh=is_fresh or pause_s > 0.0,
            pause_s=pause_s,
            proof=file_proofs.of_path_state(file_proofs.of_place(owner, repo, path)),
        )
        found = path_state(reply)
        if not found.obstacle and (found.sha or "") == left:
            break
    return found


def _pauses_s(lag_s: float) -> Generator[float]:
    """Yield the pause before each read (seconds): none before the first, then doubling, with the sum `lag_s`."""
    yield 0.0
    pause_s = LAG_PAUSE_FIRST_S
    while lag_s > 0.0:
        yield min(pause_s, lag_s)
        lag_s -= pause_s
        pause_s *= 2.0


def can_see(owner: str, repo: str, branch: str | None) -> Generator[Request, Reply, bool]:
    """Return whether the root of `branch` can be listed (the canary), so that a 404 for a path in it means absence."""
    reply = yield _list(owner, repo, "", branch)
    return reply.status == 200 or refusals.is_empty_repository(reply)


def is_surely_absent(owner: str, repo: str, path: str, branch: str | None) -> Generator[Request, Reply, bool]:
    """Return whether a 404 for `path` means absence: its folder can be read, or the root where there is no such folder,
    and does not show it. Where a file is in the place of that folder, nothing is below it."""
    folder, _, name = path.rpartition("/")
    reply = yield _list(owner, repo, folder, branch, may_be_file=bool(folder))
    if reply.status == 404 and folder:
        return (yield from can_see(owner, repo, branch))
    if reply.status == 200:
        entries = reply.body if isinstance(reply.body, list) else reply.body.get("entries", ())
        return all(entry["name"] != name for entry in entries)
    return refusals.is_empty_repository(reply)


def unseen(path: str) -> str:
    """Return the message for a 404 of `path` where no listing says the same."""
    return f"no listing confirms that {path} is not there: no such repository or branch, or no permission"


def link_sha(owner: str, repo: str, path: str, branch: str | None) -> Generator[Request, Reply, str | None]:
    """Return the blob of the symlink at `path`; None where there is no symlink.

    The folder is listed for that, because a read of `path` shows the file that the symlink leads to.
    """
    folder, _, name = path.rpartition("/")
    reply = yield _list(owner, repo, folder, branch)
    for entry in reply.body if reply.status == 200 else []:
        if entry.get("name") == name and entry.get("type") == "symlink":
            sha = entry.get("sha")
            return sha.lower() if isinstance(sha, str) else ""
    return None


def _list(owner: str, repo: str, folder: str, branch: str | None, *, may_be_file: bool = False) -> Request:
    """Return the request for a fresh listing of a folder; empty: of the root."""
    proof_of = file_proofs.of_path_state if may_be_file else file_proofs.of_directory
    return Request(
        method="GET",
        path=contents_url(owner, repo, folder),
        query=urls.query(ref=branch),
        accept=_FOUND_OR_NOT,
        is_fresh=True,
        proof=proof_of(file_proofs.of_place(owner, repo, folder)),
    )


def contents_url(owner: str, repo: str, path: str = "") -> str:
    """Return the URL path of a file of a repository; without `path`, that of the root."""
    root = f"/repos/{urls.segment(owner)}/{urls.segment(repo)}/contents"
    return f"{root}/{urls.file_path(path)}" if path else root


def path_state(reply: Reply) -> PathState:
    """Return the state that an answer (200 or 404) to a read in the object form shows."""
    if reply.status == 404:
        return PathState(missed=reply)
    body: Any = reply.body
    if isinstance(body, list):
        return PathState(obstacle="a directory")
    kind = body.get("type")
    if kind == "dir" or isinstance(body.get("entries"), list):
        return PathState(obstacle="a directory")
    if kind == "symlink":
        return PathState(obstacle=f"a symlink to {body.get('target')!r}")
    if kind == "submodule" or body.get("submodule_git_url"):
        return PathState(obstacle="a submodule")
    sha, size, html_url = body.get("sha"), body.get("size"), body.get("html_url")
    return PathState(
        sha=sha.lower(),
        size=size if isinstance(size, int) else None,
        html_url=html_url if isinstance(html_url, str) else None,
    )
