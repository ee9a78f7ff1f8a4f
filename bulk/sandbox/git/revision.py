"""The types of the repository side: the entries of a revision, its author, and the paths that can be written.

Pure: no disk, no clock. Real repositories (`repository.py`) and generated ones (`fleet.py`) answer with the same types,
so that code which reads files need not know the kind of the repository.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from dulwich.index import validate_path_element_hfs, validate_path_element_ntfs
from dulwich.refs import Ref, check_ref_format

REGULAR, EXECUTABLE, SYMLINK, DIRECTORY, GITLINK = 0o100644, 0o100755, 0o120000, 0o040000, 0o160000
LINK_DEPTH = 8
"""How many symlinks a read follows (count) before the chain counts as broken."""
PATH_BYTES = 4096
"""Longest path that can be written (bytes of UTF-8)."""
REF_BYTES = 240
"""Longest name of a branch or tag (bytes of UTF-8): what common file systems hold, with `.lock` behind it."""


class Kind(StrEnum):
    """What stands at a path, in the platform's own words."""

    FILE = "file"
    DIRECTORY = "dir"
    SYMLINK = "symlink"
    SUBMODULE = "submodule"


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of one revision.

    Attributes:
        path: from the root of the repository, without a leading slash; the root itself is "".
        mode: git's file mode.
        sha: 40 hexadecimal digits: of the blob, the tree, or the commit of a submodule.
    """

    path: str
    mode: int
    sha: str

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def kind(self) -> Kind:
        """The kind of the entry, from git's file mode."""
        match self.mode & 0o170000:
            case 0o040000:
                return Kind.DIRECTORY
            case 0o120000:
                return Kind.SYMLINK
            case 0o160000:
                return Kind.SUBMODULE
        return Kind.FILE


@dataclass(frozen=True, slots=True)
class Person:
    """The author or committer of a commit, with the date.

    Attributes:
        at: UTC epoch seconds, whole.
    """

    name: str
    email: str
    at: int


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """One commit, as the interface shows it. Shas are 40 hexadecimal digits."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Person
    committer: Person
    message: str


class Revision(Protocol):
    """The files of one commit, found by a name."""

    @property
    def name(self) -> str:
        """The name by which it was asked for: a branch, a tag or a sha."""

    @property
    def changed_at(self) -> float:
        """Since when the name has meant this commit (UTC epoch seconds)."""

    @property
    def commit_sha(self) -> str:
        """The sha of the commit."""

    def entry(self, path: str) -> Entry | None:
        """Return what stands at `path` ("" is the root directory), or None."""

    def entries(self, directory: Entry) -> Sequence[Entry]:
        """Return what a directory holds, in git's order."""

    def size(self, entry: Entry) -> int:
        """Return the size of a file or of a symlink's target (bytes); 0 for the others."""

    def read(self, entry: Entry) -> bytes:
        """Return the bytes of a file, or a symlink's target."""


class WriteConflict(Exception):
    """A write was refused because of an entry in the repository. Nothing was written.

    Attributes:
        path: the path of the conflict.
        reason: a sentence for the answer.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason


def linked_file(revision: Revision, link: Entry) -> Entry | None:
    """Return the normal file of the same revision that a symlink leads to, over further links; None: it leads
    elsewhere."""
    for _ in range(LINK_DEPTH):
        # A path that leaves the repository, absolute or over `..`, names no entry of it.
        path = posixpath.normpath(posixpath.join(posixpath.dirname(link.path), link_target(revision, link)))
        found = revision.entry("" if path == "." else path)
        if found is None or found.kind is Kind.FILE:
            return found
        if found.kind is not Kind.SYMLINK:
            return None
        link = found
    return None


def link_target(revision: Revision, link: Entry) -> str:
    """Return the target of a symlink, as text."""
    return revision.read(link).decode("utf-8", "replace")


def path_fault(path: str) -> str | None:
    """Return why a file can't be written at `path`, as a sentence, or None when it can.

    `.git` is refused in every spelling that some file system takes for it, as git itself refuses it.
    """
    if not path:
        return "path is missing"
    if path.startswith("/"):
        return "path cannot start with a slash"
    if "\0" in path or len(path.encode()) > PATH_BYTES:
        return f"path contains a NUL or is longer than {PATH_BYTES} bytes"
    for part in path.split("/"):
        name = part.encode()
        if not (validate_path_element_ntfs(name) and validate_path_element_hfs(name)):
            return "path contains a malformed path component"
    return None


def is_ref_name(name: str) -> bool:
    """Return whether git would take `name` for the name of a branch or tag, and a file system for that of a file."""
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        return False
    return len(encoded) <= REF_BYTES and bool(check_ref_format(Ref(b"refs/heads/" + encoded)))
