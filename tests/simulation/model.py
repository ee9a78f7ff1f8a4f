"""What a state machine knows of the platform, and what it therefore expects of each item of each run.

Nothing of this is asked of the engine: it follows from the manifest, from what was there before, and from what somebody
else wrote in the meantime.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.simulation.schedules import OWNER, Expected, put, snapshot

LANES = 3
"""Repositories that are written (count)."""


def name_of(repo: int) -> str:
    """The name of a repository by its number."""
    return f"repo-{repo:05d}"


class Kind(StrEnum):
    """What an item of a generated manifest does; the value is its operation."""

    PUT = "contents.put"
    PUT_OTHER_CASE = "contents.put "
    CLASH = "contents.put  "
    DELETE = "contents.delete"
    SNAPSHOT = "snapshot.create"
    ORGANIZATION = "organization.create"
    README = "readme.get"
    LOOK = "contents.get"


@dataclass(frozen=True, slots=True)
class Planned:
    """An item, and what it is about: a repository's number and a file, a correlator or a login."""

    kind: Kind
    repo: int
    about: str

    @property
    def name(self) -> str:
        """Of the repository."""
        return name_of(self.repo)

    def item(self) -> dict[str, Any]:
        """As a manifest has it."""
        place = {"owner": OWNER, "repo": self.name, "path": self.about}
        match self.kind:
            case Kind.PUT:
                return put(self.name, self.about, self.about)
            case Kind.PUT_OTHER_CASE:
                return put(self.name.upper(), self.about, self.about, OWNER.title())
            case Kind.CLASH:
                return put(f"repo-{1000 + int(self.about[1:]):05d}", "README.md", self.about, mode="create")
            case Kind.DELETE:
                return {**place, "message": "Delete"}
            case Kind.SNAPSHOT:
                return snapshot(self.name, self.about)
            case Kind.ORGANIZATION:
                return {"login": self.about, "admin": "octoadmin"}
            case Kind.README:
                return {"owner": OWNER, "repo": f"repo-{100 + int(self.about[1:]):05d}"}
            case Kind.LOOK:
                return place


@dataclass(slots=True)
class Model:
    """The platform as it must be.

    Attributes:
        files: (repository's number, path) -> what it holds.
        allowed: effects that items have asked for so far, each as often as it may be there.
    """

    files: dict[tuple[int, str], str] = field(default_factory=dict)
    snapshots: set[str] = field(default_factory=set)
    organizations: set[str] = field(default_factory=set)
    allowed: Counter[str] = field(default_factory=Counter)
    _made: int = 0

    def plan(self, kinds: Sequence[tuple[Kind, int]]) -> list[Planned]:
        """Items of these kinds; deletes take a file that is there, and become puts where none is left."""
        planned: list[Planned] = []
        there = sorted(self.files)
        for kind, repo in kinds:
            self._made += 1
            if kind is Kind.DELETE and there:
                planned.append(Planned(kind, *there.pop(self._made % len(there))))
            else:
                planned.append(Planned(Kind.PUT if kind is Kind.DELETE else kind, repo, f"f{self._made}"))
        return planned

    def expect(self, planned: Planned) -> Expected:
        """How an item must end that is begun now; its effect is allowed from now on, and taken to be there."""
        expected = self._expected(planned)
        if expected.effect:
            self.allowed[expected.effect] += 1
        return expected

    def _expected(self, planned: Planned) -> Expected:
        key, commit = (planned.repo, planned.about), f"commit {OWNER}/{planned.name} {planned.about}"
        match planned.kind:
            case Kind.PUT | Kind.PUT_OTHER_CASE:
                if self.files.get(key) == planned.about:
                    return Expected("unchanged")
                self.files[key] = planned.about
                return Expected("succeeded", effect=commit)
            case Kind.CLASH:
                return Expected("failed", "conflict", may_stay_unknown=True)
            case Kind.DELETE:
                if key not in self.files:
                    return Expected("unchanged")
                del self.files[key]
                return Expected("succeeded", effect=commit)
            case Kind.SNAPSHOT:
                if planned.about in self.snapshots:
                    return Expected("succeeded")
                self.snapshots.add(planned.about)
                return Expected("succeeded", effect=f"snapshot {OWNER}/{planned.name} {planned.about} detector")
            case Kind.ORGANIZATION:
                if planned.about in self.organizations:
                    return Expected("failed", "conflict")
                self.organizations.add(planned.about)
                return Expected("succeeded", effect=f"organization {planned.about} created")
            case Kind.README:
                return Expected("succeeded")
            case Kind.LOOK:
                return Expected("succeeded") if key in self.files else Expected("failed", "not_found")


def jobs_of(planned: Iterable[Planned]) -> dict[str, list[Planned]]:
    """The jobs of a manifest: one for each operation, deletes and looks apart from puts."""
    jobs: dict[str, list[Planned]] = {}
    for each in planned:
        jobs.setdefault(each.kind.value.strip().replace(".", "-"), []).append(each)
    return jobs
