"""Files, directories, symlinks, submodules, and commits that change files."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from tests.schemas.words import Count, Sha, Shape, Text, Timestamp, Url


class Links(Shape, rename={"self_": "self"}, kw_only=True):
    """Where a file is."""

    self_: Url
    git: Url
    html: Url


class ModuleLinks(Shape, rename={"self_": "self"}, kw_only=True):
    """Where a submodule is; elsewhere than on this platform there are no links."""

    self_: Url
    git: Url | None
    html: Url | None


class Described(Shape, rename={"links": "_links"}, kw_only=True):
    """What all that stands in a repository has."""

    name: Text
    path: Text
    sha: Sha
    size: Count
    url: Url
    html_url: Url
    git_url: Url
    links: Links


class File(Described, tag_field="type", tag="file", kw_only=True):
    """A file with its content."""

    download_url: Url
    content: str
    encoding: Literal["base64"]


class LargeFile(Described, tag_field="type", tag="file", kw_only=True):
    """A file as the object media type shows it: of 1 to 100 MB without its content."""

    download_url: Url
    content: str
    encoding: Literal["base64", "none"]

    def __post_init__(self) -> None:
        """Without an encoding there is no content."""
        if self.encoding == "none" and self.content:
            raise ValueError("content must be empty where encoding is none")


class Symlink(Described, tag_field="type", tag="symlink", kw_only=True):
    """A symlink that leads to no file of the repository."""

    download_url: Url
    target: Text


class Submodule(Shape, rename={"links": "_links"}, tag_field="type", tag="submodule", kw_only=True):
    """A submodule. Where `.gitmodules` does not name it, nobody knows where it comes from."""

    name: Text
    path: Text
    sha: Sha
    size: Count
    url: Url
    html_url: Url | None
    git_url: Url | None
    download_url: None
    submodule_git_url: Text | None
    links: ModuleLinks


class _Entry(Shape, rename={"links": "_links"}, kw_only=True):
    name: Text
    path: Text
    sha: Sha
    size: Count
    url: Url
    html_url: Url | None
    git_url: Url | None
    download_url: Url | None
    links: ModuleLinks
    submodule_git_url: Text | UnsetType | None = UNSET

    def _check(self, kind: str, kind_of_submodules: str) -> None:
        is_submodule = self.submodule_git_url is not UNSET
        if is_submodule and kind != kind_of_submodules:
            raise ValueError(f"the type of a submodule must be {kind_of_submodules}")
        if not is_submodule and None in (self.html_url, self.git_url, self.links.git, self.links.html):
            raise ValueError("only links of a submodule may be null")
        if (self.download_url is None) != (is_submodule or kind == "dir"):
            raise ValueError("download_url must be null for directories and submodules, and only for them")


class OldEntry(_Entry, kw_only=True):
    """An entry of a listing before 2026-03-10: a submodule is called a file."""

    type: Literal["file", "dir", "symlink"]

    def __post_init__(self) -> None:
        """What the fields say together."""
        self._check(self.type, "file")


class Entry(_Entry, kw_only=True):
    """An entry of a listing from 2026-03-10 on."""

    type: Literal["file", "dir", "symlink", "submodule"]

    def __post_init__(self) -> None:
        """What the fields say together."""
        self._check(self.type, "submodule")


class OldDirectory(Shape, rename={"links": "_links"}, tag_field="type", tag="dir", kw_only=True):
    """A directory as the object media type shows it. The root has no name."""

    name: str
    path: str
    sha: Sha
    size: Count
    url: Url
    html_url: Url
    git_url: Url
    download_url: None
    links: Links
    entries: list[OldEntry]


class Directory(OldDirectory, tag="dir", kw_only=True):
    """The same from 2026-03-10 on."""

    entries: list[Entry]  # type: ignore[assignment]


class Written(Described, kw_only=True):
    """A file that was written."""

    download_url: Url
    type: Literal["file"]


class Person(Shape, kw_only=True):
    """Who wrote or committed."""

    date: Timestamp
    name: Text
    email: Text


class Tree(Shape, kw_only=True):
    """What a commit holds."""

    sha: Sha
    url: Url


class Parent(Shape, kw_only=True):
    """What a commit follows."""

    sha: Sha
    url: Url
    html_url: Url


class Verification(Shape, kw_only=True):
    """Whether a commit is signed."""

    verified: bool
    reason: Text
    signature: str | None
    payload: str | None
    verified_at: Timestamp | None


class Commit(Shape, kw_only=True):
    """A commit that changed a file."""

    sha: Sha
    node_id: Text
    url: Url
    html_url: Url
    author: Person
    committer: Person
    message: Text
    tree: Tree
    parents: list[Parent]
    verification: Verification


class FileWritten(Shape, kw_only=True):
    """A file was created or replaced."""

    content: Written
    commit: Commit


class FileDeleted(Shape, kw_only=True):
    """A file was deleted."""

    content: None
    commit: Commit


def standing(version: str, media: str) -> object:
    """What a contents read shows, as JSON: a file, a symlink, a submodule, or a directory."""
    is_old = version < "2026-03-10"
    entry = OldEntry if is_old else Entry
    directory = (OldDirectory if is_old else Directory) if media == "object" else list[entry]  # type: ignore[valid-type]
    file = LargeFile if media == "object" else File
    return file | Symlink | Submodule | directory


STANDING = {
    (version, media): msgspec.json.Decoder(standing(version, media))
    for version in ("2022-11-28", "2026-03-10")
    for media in ("json", "object")
}
