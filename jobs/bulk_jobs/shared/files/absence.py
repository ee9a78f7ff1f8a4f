"""Proof that a file or directory of a repository does not exist, for jobs with `missing: ok`.

A 404 alone is not proof, because it also means that there is no such repository or branch, or no permission. A listing
of the folder proves absence, and a listing that has not changed costs nothing, while a 404 costs each time. So the
folders are listed from the root on, and the path itself is asked for where the last listing shows it. Where it is not
found then, one of the two answers is wrong, and both are asked for again. Source: operations.md, 404 rule.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

from bulk import urls
from bulk.model import ErrorCode, Outcome, Reply, Request, failed, missing
from bulk.operation import Steps
from bulk_jobs.shared import refusals
from bulk_jobs.shared.files import file_proofs
from bulk_jobs.shared.files.file_reads import MOST_ENTRIES
from bulk_jobs.shared.files.path_state import contents_url

_SEEN = frozenset((200, 404))
_READMES = ("readme", "readme.md")
"""Names that certainly are those of a README; the specification says nothing of others, such as `readme.rst`."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """The entries of a folder, name -> type; None: it can't be listed. `is_cut`: it may have more than are listed."""

    entries: dict[str, str] | None
    is_unchanged: bool = False
    is_cut: bool = False


def of_content(owner: str, repo: str, path: str, ref: str | None, steps: Callable[[], Steps]) -> Steps:
    """Return the outcome of a read of `path`; it is `missing` where the path is proven not to exist.

    Args:
        steps: returns the steps of the read itself.
    """
    *folders, name = path.split("/")
    for is_fresh in (False, True):
        is_unchanged, is_proven, kind = True, False, None
        for depth, wanted in enumerate([*folders, name]) if path else ():
            folder = yield from _list(owner, repo, "/".join(folders[:depth]), ref, is_fresh=is_fresh)
            kind = None
            if folder.entries is None:
                break
            is_proven, is_unchanged = True, is_unchanged and folder.is_unchanged
            kind = folder.entries.get(wanted)
            if kind is None and not folder.is_cut:
                return missing(is_unchanged=is_unchanged)
            if kind != "dir":  # the file itself, a link, or an entry that a cut listing may have left out
                break
        ended = yield from _read(steps())
        if isinstance(ended, Outcome):
            return ended
        if kind is None:
            is_absent = is_proven or refusals.is_empty_repository(ended)
            return missing(is_unchanged=False) if is_absent else _not_found(ended)
    return _contradicted()


def of_readme(owner: str, repo: str, ref: str | None, steps: Callable[[], Steps]) -> Steps:
    """Return the outcome of the read of a README: a 404 is absence where the root of the repository can be listed.

    Where that shows what may be a README, one of the two answers may be wrong, and both are asked for again. What
    certainly is one is not absent even then.
    """
    is_certain = False
    for is_fresh in (False, True):
        ended = yield from _read(steps())
        if isinstance(ended, Outcome):
            return ended
        folder = yield from _list(owner, repo, "", ref, is_fresh=is_fresh)
        if folder.entries is None:
            return _not_found(ended)
        names = {name.casefold(): kind for name, kind in folder.entries.items() if kind != "dir"}
        if not any(name.startswith("readme") for name in names):
            return missing(is_unchanged=False)
        is_certain = any(names.get(name) == "file" for name in _READMES)
    return _contradicted() if is_certain else missing(is_unchanged=False)


def _read(steps: Steps) -> Generator[Request, Reply, Outcome | Reply]:
    """Return the outcome of `steps`, or the reply with a 404 that the steps do not accept themselves."""
    try:
        request = next(steps)
        while True:
            reply = yield replace(request, accept=request.accept | _SEEN)
            if reply.status == 404 and 404 not in request.accept:
                steps.close()
                return reply
            request = steps.send(reply)
    except StopIteration as end:
        ended: Outcome = end.value
        return ended


def _contradicted() -> Outcome:
    return failed(ErrorCode.NOT_FOUND, "its folder lists it, and yet it is not found, twice", http_status=404)


def _not_found(reply: Reply) -> Outcome:
    return failed(ErrorCode.NOT_FOUND, refusals.message_of(reply), http_status=404)


def _list(
    owner: str, repo: str, folder: str, ref: str | None, *, is_fresh: bool = False
) -> Generator[Request, Reply, _Folder]:
    reply = yield Request(
        method="GET",
        path=contents_url(owner, repo, folder),
        query=urls.query(ref=ref),
        accept=_SEEN,
        is_fresh=is_fresh,
        proof=file_proofs.of_directory(file_proofs.of_place(owner, repo, folder)),
    )
    body: Any = reply.body
    if refusals.is_empty_repository(reply):
        return _Folder({})
    if reply.status != 200 or not isinstance(body, list):
        return _Folder(None)
    entries = {entry["name"]: entry.get("type", "") for entry in body}
    # a gateway may answer any request with an empty list
    return _Folder(entries, reply.is_unchanged, is_cut=not entries or len(entries) >= MOST_ENTRIES)
