"""How files are shown: the file content object, directory listings, and every media type of them.

`FileView` holds what all answers about one revision share, above all the URLs, which begin as the caller's own do. A
file read of 1 to 100 MB comes only as raw bytes or, with the object media type, without content; above
`REDIRECT_BYTES` raw is a 302 to a download URL; above 100 MB nothing is given.

Source: the specification's "File content object" and "Limits".
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from io import BytesIO
from struct import Struct
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

from dulwich.config import ConfigFile, parse_submodules

from bulk.sandbox.areas.contents.downloads import Downloads, quoted
from bulk.sandbox.areas.contents.rendering import rendered
from bulk.sandbox.git.revision import Entry, Kind, Revision, link_target, linked_file
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.refusals import Refused, problem
from bulk.sandbox.store.records import Repository

T = TypeVar("T")

INLINE_BYTES = 1024 * 1024
"""Largest file whose content is in a JSON or HTML answer, and that is read on the event loop (bytes)."""
REDIRECT_BYTES = 10 * 1024 * 1024
"""Raw reads of larger files are redirected to a download URL (bytes)."""
LARGEST_BYTES = 100 * 1024 * 1024
"""Larger files are not read at all (bytes)."""
MOST_ENTRIES = 1000
"""The most entries of a directory listing (count)."""
_SHORT_SSH = re.compile(r"^(?:[^/:@]+@)?(\[[^\]]*\]|[^/:]+):(?!/)(.*)", re.DOTALL)
"""The short form of an ssh address: `git@HOST:OWNER/REPO.git`."""
LINE_DIGITS = 60
"""Base64 content is broken into lines of this length (characters)."""


class FileView:
    """One revision of a repository as one caller sees it."""

    def __init__(self, call: Call, repository: Repository, revision: Revision) -> None:
        self.call, self.revision = call, revision
        state = call.context.state
        self.full_name, self._repository_id = state.full_name(repository), repository.id
        # Before its organization was renamed to this name, the name may have been another one's.
        self._changed_at = max(revision.changed_at, state.renamed_at(repository.organization_id))
        self._downloads = call.context.get(Downloads)
        self._api = f"{call.base_url}/repos/{self.full_name}"
        self._site = f"{call.site_url}/{self.full_name}"
        self._ref = quoted(revision.name)

    async def answer(self, entry: Entry) -> Answer:
        """Return the answer for the entry at a path, in the media type that was asked for."""
        match entry.kind:
            case Kind.DIRECTORY:
                return self._validated(entry, self._directory(entry), self._modules_sha())
            case Kind.SUBMODULE:
                return self._validated(entry, self._submodule(entry, is_listed=False), self._modules_sha())
            case Kind.SYMLINK:
                target = linked_file(self.revision, entry)
                if target is not None:
                    return await self.file(entry, target)
                if self.call.media == "raw":
                    return self._raw(entry, self.revision.read(entry))
                symlink = {**self.described(entry), "type": "symlink", "target": link_target(self.revision, entry)}
                return self._validated(entry, symlink)
        return await self.file(entry, entry)

    async def file(self, entry: Entry, source: Entry) -> Answer:
        """Return the answer with the content of `source`, under the names of `entry` (a symlink to it, or itself)."""
        size, media = self.revision.size(source), self.call.media
        if size > LARGEST_BYTES:
            raise _too_large("This file is larger than 100 MB: it can't be read here.")
        as_file = Entry(entry.path, source.mode, source.sha)
        if media == "raw":
            if size > REDIRECT_BYTES:
                return Answer(302, headers={"Location": self._download_url(as_file)})
            return self._raw(as_file, await self._off_loop(size, lambda: self.revision.read(source)))
        if size > INLINE_BYTES:
            if media != "object":
                raise _too_large("This file is larger than 1 MB: ask for the raw or the object media type.")
            return self._validated(as_file, {**self.described(as_file, size), "content": "", "encoding": "none"})
        data = self.revision.read(source)
        if media == "html":
            answer = self._validated(as_file, None)
            answer.raw, answer.content_type = rendered(entry.path, data), self._vendor_type("html")
            return answer
        described = self.described(as_file, size)
        described["content"], described["encoding"] = base64_lines(data), "base64"
        return self._validated(as_file, described)

    def described(self, entry: Entry, size: int | None = None) -> dict[str, object]:
        """Return the file object of a file, symlink or directory, without content."""
        path, kind = quoted(entry.path), entry.kind
        self_url = f"{self._api}/contents/{path}?ref={self._ref}"
        is_directory = kind is Kind.DIRECTORY
        git_url = f"{self._api}/git/{'trees' if is_directory else 'blobs'}/{entry.sha}"
        html_url = f"{self._site}/{'tree' if is_directory else 'blob'}/{self._ref}/{path}"
        return {
            "name": entry.name,
            "path": entry.path,
            "sha": entry.sha,
            "size": self.revision.size(entry) if size is None else size,
            "url": self_url,
            "html_url": html_url,
            "git_url": git_url,
            "download_url": None if is_directory else self._download_url(entry),
            "type": str(kind),
            "_links": {"self": self_url, "git": git_url, "html": html_url},
        }

    def _directory(self, directory: Entry) -> object:
        listed = [
            self._submodule(entry, is_listed=True) if entry.kind is Kind.SUBMODULE else self.described(entry)
            for entry in self.revision.entries(directory)[:MOST_ENTRIES]
        ]
        return {**self.described(directory), "entries": listed} if self.call.media == "object" else listed

    def _submodule(self, entry: Entry, *, is_listed: bool) -> dict[str, object]:
        """Return a submodule; in listings of the older version its type is `file`."""
        path = quoted(entry.path)
        self_url = f"{self._api}/contents/{path}?ref={self._ref}"
        remote = self._submodule_url(entry.path)
        hosted = self._hosted_name(remote)
        git_url = f"{self.call.base_url}/repos/{hosted}/git/trees/{entry.sha}" if hosted else None
        html_url = f"{self.call.site_url}/{hosted}/tree/{entry.sha}" if hosted else None
        return {
            "name": entry.name,
            "path": entry.path,
            "sha": entry.sha,
            "size": 0,
            "url": self_url,
            "html_url": html_url,
            "git_url": git_url,
            "download_url": None,
            "type": "file" if is_listed and self.call.version < "2026-03-10" else "submodule",
            "submodule_git_url": remote,
            "_links": {"self": self_url, "git": git_url, "html": html_url},
        }

    def _submodule_url(self, path: str) -> str | None:
        """Return where `.gitmodules` says that a submodule comes from; a relative address is one of this platform."""
        modules = self.revision.entry(".gitmodules")
        if modules is None or modules.kind is not Kind.FILE:
            return None
        for at, url, _ in parse_submodules(_config(self.revision.read(modules))):
            if at.decode("utf-8", "replace") == path:
                text = url.decode("utf-8", "replace")
                return urljoin(f"{self._site}/", text) if text.startswith(("./", "../")) else text
        return None

    def _modules_sha(self) -> str:
        """Return the sha of `.gitmodules`, on which answers about submodules and directories depend."""
        modules = self.revision.entry(".gitmodules")
        return modules.sha if modules else ""

    def _hosted_name(self, url: str | None) -> str | None:
        """Return `OWNER/REPO` of an address on this platform (http, git or ssh); None for any other."""
        ours = urlsplit(self.call.site_url)
        try:
            theirs = urlsplit(_SHORT_SSH.sub(r"ssh://\1/\2", url or ""))
        except ValueError:  # anybody may write any address into `.gitmodules`
            return None
        if theirs.scheme in ("http", "https"):
            is_ours = theirs.netloc.rpartition("@")[2].lower() == ours.netloc.lower()
        else:  # git and ssh have ports of their own
            is_ours = theirs.scheme in ("git", "ssh") and theirs.hostname == ours.hostname
        return theirs.path.strip("/").removesuffix(".git") if is_ours else None

    def _download_url(self, entry: Entry) -> str:
        return self._downloads.url(
            self.call.base_url, self.full_name, self._repository_id, entry.sha, entry.path, self.call.now
        )

    def _raw(self, entry: Entry, data: bytes) -> Answer:
        answer = self._validated(entry, None)
        answer.raw, answer.content_type = data, self._vendor_type("raw")
        return answer

    def _vendor_type(self, parameter: str) -> str:
        return f"application/vnd.{self.call.context.vendor.name}.{parameter}; charset=utf-8"

    def _validated(self, entry: Entry, body: object, modules_sha: str = "") -> Answer:
        """Return the answer about an entry with its validators.

        The ETag is weak, because it stands for the content, and each answer has download URLs of its own. A branch that
        moved within the present second gets no Last-Modified, because it may move again within that second.
        """
        call, changed_at = self.call, self._changed_at
        shown = f"{entry.kind} {entry.sha} {modules_sha} {entry.path}"
        seen = f"{call.media} {call.version} {self._api} {self._ref} {shown}"
        etag = f'W/"{blake2b(seen.encode(), digest_size=16).hexdigest()}"'
        is_settled = int(changed_at) < int(call.now)
        return Answer(body=body, etag=etag, last_modified=changed_at if is_settled else None)

    async def _off_loop(self, size: int, work: Callable[[], T]) -> T:
        """Do work on `size` bytes: at once if they are few, else in a thread."""
        return await self.call.context.blocking(work) if size > INLINE_BYTES else work()


def base64_lines(data: bytes) -> str:
    """Return Base64 as the platform writes it: lines of 60 characters, each with a newline."""
    text = binascii.b2a_base64(data, newline=False)
    lines = b"\n".join(_lines(len(text)).unpack(text)).decode()
    return f"{lines}\n" if lines else ""


@lru_cache(64)
def _lines(length: int) -> Struct:
    """Return a struct that cuts `length` characters into lines: this is several times faster than slices, and READMEs
    are read by the thousand.
    """
    whole, rest = divmod(length, LINE_DIGITS)
    return Struct(f"{LINE_DIGITS}s" * whole + f"{rest}s" * bool(rest))


def _config(data: bytes) -> ConfigFile:
    try:
        return ConfigFile.from_file(BytesIO(data))
    except ValueError:
        return ConfigFile()


def _too_large(message: str) -> Refused:
    return Refused(403, message, errors=[problem("Blob", "data", "too_large")])
