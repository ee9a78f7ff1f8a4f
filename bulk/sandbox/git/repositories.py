"""All repositories of a sandbox, real and generated ones, through which areas find files.

Most repositories have a row and a directory. Those of a fleet are generated until somebody writes to them. A repository
that a seed file names is made from the files of the seed when it is first asked for.
"""

from __future__ import annotations

from bulk.sandbox.git.directory import GitStore
from bulk.sandbox.git.fleet import Fleet
from bulk.sandbox.git.repository import Change, GitRepository
from bulk.sandbox.git.revision import Entry, Person, Revision
from bulk.sandbox.git.standard_repositories import FILLS
from bulk.sandbox.http.context import Context
from bulk.sandbox.store.records import Organization, Repository
from bulk.sandbox.store.state import State


class Repositories:
    """Finds the files of a repository (`Context.get(Repositories)`). Called on the event loop's thread."""

    def __init__(self, state: State, store: GitStore) -> None:
        self._state, self._store = state, store
        self._fleets: dict[int, list[Fleet]] = {}
        for row in state.db.execute("SELECT * FROM fleets"):
            fleet = Fleet(
                row["organization_id"],
                row["first_id"],
                row["count"],
                row["readme_bytes"],
                row["prefix"],
                row["created_at"],
            )
            self._fleets.setdefault(fleet.organization_id, []).append(fleet)

    def revision(self, repository: Repository, name: str | None = None) -> Revision | None:
        """Return the files of a branch, tag or commit (default: the default branch); None: nothing has that name."""
        asked = name or repository.default_branch
        if repository.id not in self._store:
            generated = self._generated(repository)
            if generated is not None:
                fleet, index = generated
                return fleet.revision(index, asked)
        return self.git(repository).revision(asked)

    def is_empty(self, repository: Repository) -> bool:
        """Return whether the repository has no commit."""
        return not self._is_generated(repository) and self.git(repository).is_empty()

    def has_branch(self, repository: Repository, name: str) -> bool:
        """Return whether there is a branch of exactly this name."""
        if self._is_generated(repository):
            return name == repository.default_branch
        return self.git(repository).has_branch(name)

    def blob(self, repository: Repository, sha: str) -> bytes:
        """Return the bytes of a blob.

        Raises:
            KeyError: there is none.
        """
        revision = self.revision(repository) if self._is_generated(repository) else None
        return revision.read(Entry("", 0, sha)) if revision else self.git(repository).blob(sha)

    def git(self, repository: Repository) -> GitRepository:
        """Return the repository on disk; it is made now if it was not there yet."""
        if repository.id in self._store:
            return self._store.open(repository.id)
        owner = self._state.organization_by_id(repository.organization_id).login
        return self._store.create(
            repository.id, owner, repository.name, lambda made: self._fill(repository, made), repository.default_branch
        )

    def found(self, organization: Organization, name: str) -> Repository | None:
        """Return the generated repository of that name (a `RepositorySource` of the state)."""
        for fleet in self._fleets.get(organization.id, ()):
            index = fleet.index_of(name)
            if index is not None:
                return _record(fleet, index)
        return None

    def owner_renamed(self, old: str, new: str) -> None:
        """Let people find the repositories of a renamed organization under its new name."""
        self._store.rename_owner(old, new)

    def relink(self) -> None:
        """Let the links on disk follow the names in the state, and make the standard repositories that are missing."""
        names: dict[int, tuple[str, str]] = {}
        for row in self._state.db.execute("SELECT id, organization_id, name FROM repositories"):
            owner = self._state.organization_by_id(row["organization_id"])
            names[row["id"]] = (owner.login, row["name"])
            if row["id"] in FILLS and row["id"] not in self._store:
                standard = self._state.repository(owner, row["name"])
                if standard is not None:
                    self.git(standard)
        for fleets in self._fleets.values():
            for fleet in fleets:
                owner = self._state.organization_by_id(fleet.organization_id)
                for number in self._store.numbers():
                    index = fleet.index_of_id(number)
                    if index is not None:
                        names[number] = (owner.login, fleet.name(index))
        self._store.relink(names)

    def _is_generated(self, repository: Repository) -> bool:
        return repository.id not in self._store and self._generated(repository) is not None

    def _generated(self, repository: Repository) -> tuple[Fleet, int] | None:
        for fleet in self._fleets.get(repository.organization_id, ()):
            index = fleet.index_of_id(repository.id)
            if index is not None:
                return fleet, index
        return None

    def _fill(self, repository: Repository, made: GitRepository) -> None:
        generated = self._generated(repository)
        if generated is not None:
            fleet, index = generated
            fleet.fill(index, made)
            return
        rows = self._state.db.execute(
            "SELECT path, content FROM seed_files WHERE repository_id = ?", (repository.id,)
        ).fetchall()
        name, fill = FILLS.get(repository.id, ("", None))
        if rows:
            author = Person("Seed", "seed@acme.example", int(repository.created_at))
            changes = {row["path"]: Change(row["content"]) for row in rows}
            made.commit(repository.default_branch, changes, "Add the files of the seed", author, author)
        elif fill is not None and name == repository.name:
            fill(made)


def _record(fleet: Fleet, index: int) -> Repository:
    return Repository(
        fleet.first_id + index,
        fleet.organization_id,
        fleet.name(index),
        private=False,
        description="",
        default_branch="main",
        created_at=fleet.created_at,
    )


def start(context: Context) -> None:
    """Open the repositories of a sandbox, once, whichever area asks first."""
    repositories = Repositories(context.state, GitStore(context.directory / "repositories", context.clock.now))
    context.put(repositories)
    context.state.add_source(repositories.found)
    context.state.when_renamed(repositories.owner_renamed)
    repositories.relink()
