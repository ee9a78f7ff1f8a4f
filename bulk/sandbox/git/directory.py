"""The directory with the repositories of a sandbox, and the names under which people find them.

A repository lives in `ROOT/.by-id/ID.git`, named by its number, which never changes; `ROOT/OWNER/NAME.git` is a link
to it for people (`git -C ROOT/acme-eng/hello-world.git log`). A rename moves links only, so there is no moment at
which a crash loses a repository. A new repository is made beside its place and appears by one rename, with all that
it holds.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from bulk.sandbox.git.object_cache import ObjectCache
from bulk.sandbox.git.repository import DEFAULT_BRANCH, GitRepository


class GitStore:
    """All repositories of a sandbox, found by their numbers.

    Args:
        root: the directory that holds them; made if it is missing.
        now: returns the present instant (UTC epoch seconds), with which moves of branches are dated.
        cache_bytes: memory for parsed trees, commits and small files (bytes).
    """

    def __init__(self, root: Path, now: Callable[[], float], cache_bytes: int = 32 * 1024 * 1024) -> None:
        self._root, self._now = root, now
        self._homes = root / ".by-id"
        self._homes.mkdir(parents=True, exist_ok=True)
        self._cache = ObjectCache(cache_bytes)
        self._ids = {int(home.stem) for home in self._homes.glob("*.git") if home.stem.isdigit()}
        self._open: dict[int, GitRepository] = {}

    def __contains__(self, repository_id: object) -> bool:
        """Return whether the repository exists on disk."""
        return repository_id in self._ids

    def open(self, repository_id: int) -> GitRepository:
        """Return the repository with that number.

        Raises:
            KeyError: there is no such repository on disk.
        """
        found = self._open.get(repository_id)
        if found is None:
            if repository_id not in self._ids:
                raise KeyError(repository_id)
            found = GitRepository(self._homes / f"{repository_id}.git", repository_id, self._now, self._cache)
            self._open[repository_id] = found
        return found

    def create(
        self,
        repository_id: int,
        owner: str,
        name: str,
        fill: Callable[[GitRepository], None] | None = None,
        default_branch: str = DEFAULT_BRANCH,
    ) -> GitRepository:
        """Make a repository, or open an existing one.

        Args:
            fill: puts the first contents into a new repository, before anybody can see it.
            default_branch: the branch to which the HEAD of a new repository points.
        """
        home = self._homes / f"{repository_id}.git"
        if repository_id not in self._ids:
            draft = home.with_suffix(".draft")
            shutil.rmtree(draft, ignore_errors=True)
            _lay_out(draft, default_branch)
            if fill is not None:
                fill(GitRepository(draft, repository_id, self._now, self._cache))
            draft.rename(home)
            self._ids.add(repository_id)
        self.link(repository_id, owner, name)
        return self.open(repository_id)

    def close(self) -> None:
        """Close all repositories."""
        while self._open:
            self._open.popitem()[1].close()

    def link(self, repository_id: int, owner: str, name: str) -> None:
        """Let `ROOT/OWNER/NAME.git` lead to the repository; an earlier link there is replaced."""
        link, target = self._root / owner / f"{name}.git", f"../.by-id/{repository_id}.git"
        if link.is_symlink() and os.readlink(link) == target:
            return
        link.parent.mkdir(exist_ok=True)
        draft = link.with_suffix(".draft")
        draft.unlink(missing_ok=True)
        draft.symlink_to(target)
        draft.replace(link)

    def rename_owner(self, old: str, new: str) -> None:
        """Move the links of an owner to its new name. Safe to repeat."""
        source, target = self._root / old, self._root / new
        if old == new or not source.is_dir():
            return
        target.mkdir(exist_ok=True)
        for link in source.iterdir():
            link.replace(target / link.name)
        source.rmdir()

    def relink(self, names: Mapping[int, tuple[str, str]]) -> None:
        """Let the links be exactly those of `names` (number → owner and name), whatever a killed sandbox has left.

        Numbers that are not on disk are passed over.
        """
        wanted = {self._root / owner / f"{name}.git" for number, (owner, name) in names.items() if number in self._ids}
        for link in self._root.glob("[!.]*/*"):
            if link not in wanted:
                link.unlink()
        for number, (owner, name) in names.items():
            if number in self._ids:
                self.link(number, owner, name)
        for directory in self._root.glob("[!.]*"):
            if not any(directory.iterdir()):
                directory.rmdir()

    def numbers(self) -> frozenset[int]:
        """Return the numbers of all repositories on disk."""
        return frozenset(self._ids)


def _lay_out(home: Path, default_branch: str) -> None:
    """Write the files of an empty bare repository. The library's own way syncs each file and takes twice as long."""
    for directory in ("objects", "refs/heads"):
        (home / directory).mkdir(parents=True)
    (home / "HEAD").write_bytes(f"ref: refs/heads/{default_branch}\n".encode())
    (home / "config").write_bytes(b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n")
