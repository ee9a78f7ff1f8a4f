"""The platform as a witness: its journal, read as it grows, and the git history of what was written.

Whether something happened is asked of these two alone, never of the engine.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from bulk.sandbox.git.repositories import Repositories
from bulk.sandbox.git.repository import Change
from bulk.sandbox.git.revision import Person
from bulk.sandbox.store.records import Repository
from tests.simulation.invariants import came_late
from tests.simulation.model import LANES, Model, name_of
from tests.simulation.schedules import OWNER
from tests.simulation.world import Entry, World

RIVAL = Person("Somebody Else", "else@example.com", 1_800_000_000)


@dataclass(slots=True)
class Witness:
    """What has happened on the platform.

    Attributes:
        effects: what was changed, without the sha that nobody knows before -> how often.
        commits: repository -> its commits by the journal, oldest first.
        refused: requests beyond a budget (count).
    """

    made: World
    effects: Counter[str] = field(default_factory=Counter)
    commits: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    refused: int = 0
    _read_bytes: int = 0
    _bases: dict[str, str] = field(default_factory=dict)
    _rival: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for repo in range(LANES):
            revision = self.made.sandbox.context.get(Repositories).revision(self._repository(name_of(repo)))
            assert revision is not None
            self._bases[name_of(repo)] = revision.commit_sha

    def write(self, name: str, path: str, text: str) -> None:
        """Somebody else commits a file to a repository."""
        repository = self._repository(name)
        repositories = self.made.sandbox.context.get(Repositories)
        record = repositories.git(repository).commit("main", {path: Change(text.encode())}, "Mine", RIVAL, RIVAL)
        self._rival.add(record.sha)

    def look(self, model: Model) -> None:
        """Every effect at most as often as items asked for it, one write of a lane at a time, nothing beyond a budget,
        and the git history says the same as the journal."""
        touched = self._read_on()
        beyond = self.effects - model.allowed
        assert not beyond, f"more often than asked for: {beyond}"
        late = sum(map(came_late, self.made.network.exchanges))
        assert self.refused <= late, f"{self.refused} requests beyond a budget, {late} came late"
        for name in touched:
            history = self._history(name)
            assert history == self.commits[name], f"{name}: git has {history}, the journal {self.commits[name]}"

    def has_all(self, model: Model) -> None:
        """What items asked for is there, each once, and every file holds what it must."""
        missing = model.allowed - self.effects
        assert not missing, f"missing: {missing}"
        repositories = self.made.sandbox.context.get(Repositories)
        for (repo, path), text in model.files.items():
            name = name_of(repo)
            revision = repositories.revision(self._repository(name))
            entry = revision.entry(path) if revision else None
            assert revision is not None, name
            assert entry is not None, f"{name} has no {path}"
            assert revision.read(entry).decode() == text, f"{name} {path}"

    def _repository(self, name: str) -> Repository:
        state = self.made.sandbox.context.state
        owner = state.organization(OWNER)
        assert owner is not None
        found = state.repository(owner, name)
        assert found is not None
        return found

    def _read_on(self) -> set[str]:
        """Take in the journal's new lines; which repositories have new commits."""
        with self.made.journal_path.open("rb") as file:
            file.seek(self._read_bytes)
            text = file.read()
        self._read_bytes += len(text)
        touched: set[str] = set()
        for line in text.decode().splitlines():
            entry = Entry.read(line)
            self.refused += entry.status == 403 and entry.remaining == 0
            if entry.effect is None:
                continue
            kind, _, rest = entry.effect.partition(" ")
            self.effects[entry.effect.rpartition(" ")[0] if kind in ("commit", "snapshot") else entry.effect] += 1
            if kind == "commit":
                name = rest.split(" ")[0].partition("/")[2]
                self.commits[name].append(rest.rpartition(" ")[2])
                touched.add(name)
        return touched

    def _history(self, name: str) -> list[str]:
        """The engine's commits of the default branch, oldest first."""
        repositories = self.made.sandbox.context.get(Repositories)
        repository = self._repository(name)
        git, revision = repositories.git(repository), repositories.revision(repository)
        assert revision is not None
        found, sha = [], revision.commit_sha
        while sha != self._bases[name]:
            record = git.commit_record(sha)
            if sha not in self._rival:
                found.append(sha)
            assert len(record.parents) == 1, f"{name}: {sha} has no parent, or several"
            sha = record.parents[0]
        return found[::-1]
