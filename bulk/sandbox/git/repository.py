"""One real git repository on disk: a plain bare one, which the `git` command can read.

Objects are written before the branch that names them, and the branch by one rename: a process killed anywhere leaves
the old commit or the new one. Nothing is synced to the disk: a rehearsal needs no power-loss safety, and a commit
costs a millisecond or two.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from dulwich.object_store import DiskObjectStore, peel_sha
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tree
from dulwich.refs import DiskRefsContainer, Ref

from bulk.sandbox.git.object_cache import ObjectCache
from bulk.sandbox.git.revision import (
    DIRECTORY,
    EXECUTABLE,
    GITLINK,
    REGULAR,
    CommitRecord,
    Entry,
    Kind,
    Person,
    WriteConflict,
    is_ref_name,
)

DEFAULT_BRANCH = "main"
SMALL_BLOB_BYTES = 64 * 1024
"""Blobs up to this size are kept in the cache (bytes)."""
# How much of a loose object is read for its kind and size: compressed, they may follow a table of some hundred bytes.
_HEADER_BYTES, _PACKED_HEADER_BYTES = 64, 2048
_COMPRESSION = 1
# about how much a commit takes in the cache
_RECORD_BYTES = 600
_Parts = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What a path holds after a commit: the bytes of a file, a symlink's target, or a submodule's commit sha."""

    data: bytes
    mode: int = REGULAR


class GitRepository:
    """One bare repository. Calls block for some milliseconds at most, unless a file is large; one writer at a time."""

    def __init__(self, home: Path, repository_id: int, now: Callable[[], float], cache: ObjectCache) -> None:
        self._home, self._id, self._now, self._cache = home, repository_id, now, cache
        self._objects = DiskObjectStore(home / "objects", loose_compression_level=_COMPRESSION)
        self._refs = DiskRefsContainer(home)

    def close(self) -> None:
        """Close the packs that were read, if somebody packed the repository."""
        self._objects.close()

    def revision(self, name: str) -> GitRevision | None:
        """Return the files of a branch, a tag or a commit (a full sha, or its first 7 digits or more), in that order.

        Args:
            name: also `refs/heads/…`, `refs/tags/…`, `heads/…`, `tags/…`.

        Returns:
            The files; None when nothing has that name.
        """
        for ref in (f"refs/heads/{name}", f"refs/tags/{name}", name, f"refs/{name}"):
            found = self._ref(ref)
            if found is not None:
                sha, changed_at = self._peeled(found[0]), found[1]
                break
        else:
            named = self._commit_named(name)
            if named is None:
                return None
            sha, changed_at = named, None
        return GitRevision(
            self, name, sha, float(self.commit_record(sha).committer.at) if changed_at is None else changed_at
        )

    def has_branch(self, name: str) -> bool:
        """Return whether there is a branch with exactly this name."""
        return self._ref(f"refs/heads/{name}") is not None

    def is_empty(self) -> bool:
        """Return whether there is no commit on any branch."""
        return not any(ref.startswith(b"refs/heads/") for ref in self._refs.allkeys())

    def commit(
        self, branch: str, changes: Mapping[str, Change | None], message: str, author: Person, committer: Person
    ) -> CommitRecord:
        """Put one commit on a branch, which the first commit of the branch creates.

        Args:
            changes: what each path holds afterwards; None deletes it, with the directories that become empty.

        Raises:
            WriteConflict: a path leads through a file or ends at a directory or submodule. Nothing is written.
            KeyError: a path that shall be deleted does not exist. Nothing is written.
        """
        tip = self._ref(f"refs/heads/{branch}")
        parents = (tip[0],) if tip else ()
        tree = self.commit_record(tip[0]).tree if tip else None
        added: list[ShaFile] = []
        by_parts = {tuple(path.encode().split(b"/")): change for path, change in changes.items()}
        tree = self._grafted(tree, "", by_parts, added) or _added(Tree(), added)
        commit = commit_object(tree, parents, message, author, committer)
        self.add((*added, commit))
        record = CommitRecord(commit.id.decode(), tree, parents, author, committer, message)
        # The next write to the branch begins with these objects.
        for each in added:
            if isinstance(each, Tree):
                self._keep_children(each)
        self._cache.put((self._id, record.sha), record, _RECORD_BYTES)
        self.point(f"refs/heads/{branch}", record.sha)
        return record

    def add(self, objects: Iterable[ShaFile]) -> None:
        """Write objects that nothing refers to yet."""
        for each in objects:
            self._objects.add_object(each)

    def point(self, ref: str, sha: str, changed_at: float | None = None) -> None:
        """Let a full ref name mean a commit from now on, or from `changed_at` (UTC epoch seconds), in one step."""
        path = self._home / ref
        draft = path.with_name(path.name + ".lock")
        at = self._now() if changed_at is None else changed_at
        try:
            draft.write_bytes(sha.encode() + b"\n")
        except FileNotFoundError:
            draft.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(sha.encode() + b"\n")
        os.utime(draft, (at, at))
        draft.replace(path)

    def commit_record(self, sha: str) -> CommitRecord:
        """Return the commit with this full sha.

        Raises:
            KeyError: there is no such commit.
        """
        cached = self._cache.get((self._id, sha))
        if isinstance(cached, CommitRecord):
            return cached
        found = self._objects[ObjectID(sha.encode())]
        if not isinstance(found, Commit):
            raise KeyError(sha)
        record = CommitRecord(
            sha,
            found.tree.decode(),
            tuple(parent.decode() for parent in found.parents),
            _person(found.author, found.author_time),
            _person(found.committer, found.commit_time),
            found.message.decode("utf-8", "replace"),
        )
        self._cache.put((self._id, sha), record, _RECORD_BYTES)
        return record

    def children(self, tree: str) -> Mapping[bytes, tuple[int, str]]:
        """Return what a tree holds: name → (mode, sha), in git's order. Not to be changed.

        Raises:
            KeyError: there is no such tree.
        """
        cached = self._cache.get((self._id, tree))
        if isinstance(cached, dict):
            return cast("dict[bytes, tuple[int, str]]", cached)
        found = self._objects[ObjectID(tree.encode())]
        if not isinstance(found, Tree):
            raise KeyError(tree)
        return self._keep_children(found)

    def _keep_children(self, tree: Tree) -> Mapping[bytes, tuple[int, str]]:
        listed = {item.path: (item.mode, item.sha.decode()) for item in tree.iteritems()}
        self._cache.put((self._id, tree.id.decode()), listed, 200 + 200 * len(listed))
        return listed

    def blob(self, sha: str) -> bytes:
        """Return the bytes of a blob.

        Raises:
            KeyError: there is no such blob.
        """
        cached = self._cache.get((self._id, sha))
        if isinstance(cached, bytes):
            return cached
        found = self._objects[ObjectID(sha.encode())]
        if not isinstance(found, Blob):
            raise KeyError(sha)
        data = found.data
        if len(data) <= SMALL_BLOB_BYTES:
            self._cache.put((self._id, sha), data, 100 + len(data))
        return data

    def blob_size(self, sha: str) -> int:
        """Return the size of a blob (bytes), read from its header alone where it lies loose.

        Raises:
            KeyError: there is no such blob.
        """
        cached = self._cache.get((self._id, sha))
        if isinstance(cached, bytes):
            return len(cached)
        try:
            with open(self._home / "objects" / sha[:2] / sha[2:], "rb") as file:
                start = zlib.decompressobj().decompress(file.read(_PACKED_HEADER_BYTES), _HEADER_BYTES)
        except FileNotFoundError:
            return len(self.blob(sha))
        return int(start[: start.index(b"\0")].split(b" ")[1])

    def _ref(self, ref: str) -> tuple[str, float | None] | None:
        """Return the sha of a full ref name, and since when it has that (None: unknown, because the ref is packed)."""
        if not ref.startswith("refs/") or not is_ref_name(ref):
            return None
        try:
            with open(self._home / ref, "rb") as file:
                return file.read(41).strip().decode(), os.fstat(file.fileno()).st_mtime
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            packed = self._refs.get_packed_refs().get(Ref(ref.encode()))
            return (packed.decode(), None) if packed else None

    def _peeled(self, sha: str) -> str:
        """Return the commit that a sha leads to, also through an annotated tag."""
        if isinstance(self._cache.get((self._id, sha)), CommitRecord):
            return sha
        return peel_sha(self._objects, ObjectID(sha.encode()))[1].id.decode()

    def _commit_named(self, text: str) -> str | None:
        """Return the full sha of the one commit whose sha begins with `text`."""
        digits = text.lower()
        if not 7 <= len(digits) <= 40 or set(digits) - set("0123456789abcdef"):
            return None
        found = list(self._objects.iter_prefix(digits.encode()))
        try:
            return self.commit_record(found[0].decode()).sha if len(found) == 1 else None
        except KeyError:
            return None

    def _grafted(
        self, tree: str | None, path: str, changes: Mapping[_Parts, Change | None], added: list[ShaFile]
    ) -> str | None:
        """Return the tree at `path` after the changes below it: its sha, None when nothing is left in it.

        New objects are appended to `added`, leaves first.
        """
        held = dict(self.children(tree)) if tree else {}
        below: dict[bytes, dict[_Parts, Change | None]] = {}
        for parts, change in changes.items():
            below.setdefault(parts[0], {})[parts[1:]] = change
        for name, inner in below.items():
            before, inner_path = held.get(name), f"{path}{name.decode()}"
            if () in inner:
                after = _changed(before, inner_path, inner[()], added)
            elif before is not None and before[0] != DIRECTORY:
                raise WriteConflict(inner_path, "is not a directory")
            else:
                subtree = self._grafted(before[1] if before else None, f"{inner_path}/", inner, added)
                after = (DIRECTORY, subtree) if subtree else None
            if after is None:
                held.pop(name, None)
            else:
                held[name] = after
        if not held:
            return None
        new = Tree()
        for name, (mode, sha) in held.items():
            new.add(name, mode, ObjectID(sha.encode()))
        return _added(new, added)


class GitRevision:
    """The files of one commit of a real repository (`revision.Revision`)."""

    __slots__ = ("_repository", "changed_at", "commit_sha", "name")

    def __init__(self, repository: GitRepository, name: str, commit_sha: str, changed_at: float) -> None:
        self._repository, self.name, self.commit_sha, self.changed_at = repository, name, commit_sha, changed_at

    def entry(self, path: str) -> Entry | None:
        """Return what stands at `path` ("" is the root directory), or None."""
        mode, sha = DIRECTORY, self._repository.commit_record(self.commit_sha).tree
        for part in path.encode("utf-8", "replace").split(b"/") if path else ():
            found = self._repository.children(sha).get(part) if mode == DIRECTORY else None
            if found is None:
                return None
            mode, sha = found
        return Entry(path, mode, sha)

    def entries(self, directory: Entry) -> list[Entry]:
        """Return what a directory holds, in git's order."""
        return list(self._listed(directory))

    def _listed(self, directory: Entry) -> Iterator[Entry]:
        start = f"{directory.path}/" if directory.path else ""
        for name, (mode, sha) in self._repository.children(directory.sha).items():
            yield Entry(start + name.decode("utf-8", "replace"), mode, sha)

    def size(self, entry: Entry) -> int:
        """Return the size of a file or of a symlink's target (bytes); 0 for the others."""
        return self._repository.blob_size(entry.sha) if entry.kind in (Kind.FILE, Kind.SYMLINK) else 0

    def read(self, entry: Entry) -> bytes:
        """Return the bytes of a file, or a symlink's target."""
        return self._repository.blob(entry.sha)


def blob_sha(data: bytes) -> str:
    """Return Git's sha of a file with these bytes: 40 hexadecimal digits."""
    return Blob.from_string(data).id.decode()


def _added(new: ShaFile, added: list[ShaFile]) -> str:
    added.append(new)
    return new.id.decode()


def _changed(
    before: tuple[int, str] | None, path: str, change: Change | None, added: list[ShaFile]
) -> tuple[int, str] | None:
    """Return what stands at a path after a change of the path itself: (mode, sha), or None when it is deleted."""
    if before is not None and before[0] in (DIRECTORY, GITLINK):
        raise WriteConflict(path, "is a directory" if before[0] == DIRECTORY else "is a submodule")
    if change is None:
        if before is None:
            raise KeyError(path)
        return None
    if change.mode == GITLINK:
        return GITLINK, change.data.decode()
    keeps_mode = change.mode == REGULAR and before is not None and before[0] == EXECUTABLE
    return EXECUTABLE if keeps_mode else change.mode, _added(Blob.from_string(change.data), added)


def commit_object(tree: str, parents: Sequence[str], message: str, author: Person, committer: Person) -> Commit:
    """Return a commit that is not written anywhere yet."""
    commit = Commit()
    commit.tree = ObjectID(tree.encode())
    commit.parents = [ObjectID(parent.encode()) for parent in parents]
    commit.author, commit.author_time, commit.author_timezone = _signature(author)
    commit.committer, commit.commit_time, commit.commit_timezone = _signature(committer)
    commit.message = message.encode()
    return commit


def _signature(person: Person) -> tuple[bytes, int, int]:
    return f"{person.name} <{person.email}>".encode(), person.at, 0


def _person(signature: bytes, at: int) -> Person:
    name, _, email = signature.decode("utf-8", "replace").partition(" <")
    return Person(name, email.rstrip(">"), at)
