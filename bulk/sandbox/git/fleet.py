"""Generated repositories: any number of them, none of them held in memory or on disk until it is written to.

The repositories of a fleet are called `repo-00000`, `repo-00001`, … (as many digits as the last number needs, at
least five; another prefix than `repo-` can be chosen). Each is public and has one commit on `main` with one file,
`README.md`, whose text is different for each repository and never changes. Everything about a repository is computed
from its number; when somebody writes to it, a real repository with the same commit is made first.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from itertools import accumulate

from dulwich.objects import Blob, ShaFile, Tree

from bulk.sandbox.git.repository import DEFAULT_BRANCH, GitRepository, commit_object
from bulk.sandbox.git.revision import DIRECTORY, REGULAR, Entry, Kind, Person

README = "README.md"
PREFIX = "repo-"
_BRANCH_NAMES = (DEFAULT_BRANCH, f"refs/heads/{DEFAULT_BRANCH}", f"heads/{DEFAULT_BRANCH}")
_TOPICS = (
    ("Build", "Run the build from the top of the tree; it needs no network once the packages are there."),
    ("Configuration", "Every setting has a default that suits a laptop; production values come from the environment."),
    (
        "Deployment",
        "A release is a tag. The pipeline signs it, ships it to one zone, waits, and goes on to the others.",
    ),
    ("Interfaces", "Calls are versioned by date, and an old version lives on for two years after its successor."),
    ("Storage", "Records are written once and folded on reading; a nightly job drops what nobody may keep."),
    ("Testing", "Tests use real parts on loopback. One that needs an hour gets it from a clock that jumps."),
    ("Monitoring", "Four numbers matter: traffic, errors, latency and how full the queue is. All have a dashboard."),
    ("Security", "Report what you find to the address in the profile of the team, not in an open ticket."),
    ("Ownership", "The team that is named in the code owners answers within a working day."),
    ("Releases", "Changes are listed for people who use this service, newest first, with what they have to do."),
    ("Limits", "A caller gets its own allowance, and the answer says how much of it is left and when it returns."),
    ("History", "It began as a script of forty lines; what was learned since stands next to the code it explains."),
    ("Glossary", "One idea has one name here, also in tables, logs and the titles of dashboards."),
)
_PARAGRAPHS = tuple(f"## {title}\n\n{text}\n\n".encode() for title, text in _TOPICS)
_STARTS = tuple(accumulate(map(len, _PARAGRAPHS[:-1]), initial=0))


@dataclass(frozen=True, slots=True)
class Fleet:
    """Many generated repositories of one organization.

    Attributes:
        organization_id: the organization that owns them.
        first_id: the number of the first repository; the others follow.
        count: repositories (count, >= 0).
        readme_bytes: about how long each README is (bytes).
        prefix: the beginning of every name.
        created_at: when each got its one commit (UTC epoch seconds).
    """

    organization_id: int
    first_id: int
    count: int
    readme_bytes: int = 3000
    prefix: str = PREFIX
    created_at: float = 0.0
    _filling: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        once = b"".join(_PARAGRAPHS)
        object.__setattr__(self, "_filling", once * (self.readme_bytes // len(once) + 2))

    @property
    def digits(self) -> int:
        """How many digits a name ends with."""
        return max(5, len(str(self.count - 1)))

    def name(self, index: int) -> str:
        """Return the name of a repository (index from 0)."""
        return f"{self.prefix}{index:0{self.digits}d}"

    def index_of(self, name: str) -> int | None:
        """Return the index of the repository of that name, in any case; None: there is no such repository."""
        number = name[len(self.prefix) :]
        if name[: len(self.prefix)].lower() != self.prefix.lower() or len(number) != self.digits:
            return None
        index = int(number) if number.isascii() and number.isdigit() else self.count
        return index if index < self.count else None

    def index_of_id(self, repository_id: int) -> int | None:
        """Return the index of the repository with this number; None: there is no such repository."""
        index = repository_id - self.first_id
        return index if 0 <= index < self.count else None

    def readme(self, index: int) -> bytes:
        """Return the README of a repository: Markdown, ASCII, `readme_bytes` long or as long as its first two lines."""
        head = f"# {self.name(index)}\n\nRepository {self.first_id + index}.\n\n".encode()
        length = self.readme_bytes - len(head) - 1
        if length <= 0:
            return head[:-1]
        start = _STARTS[index % len(_STARTS)]
        return b"%b%b\n" % (head, self._filling[start : start + length])

    def revision(self, index: int, name: str) -> GeneratedRevision | None:
        """Return the files of a repository, by branch or commit, as `GitRepository.revision` finds them."""
        found = GeneratedRevision(self, index, name)
        if name in _BRANCH_NAMES or (7 <= len(name) <= 40 and found.commit_sha.startswith(name.lower())):
            return found
        return None

    def fill(self, index: int, repository: GitRepository) -> None:
        """Put the commit of the generated repository into a new real one."""
        objects = self._objects(index)
        repository.add(objects)
        repository.point(f"refs/heads/{DEFAULT_BRANCH}", objects[-1].id.decode(), self.created_at)

    def commit_sha(self, index: int) -> str:
        """Return the sha of a repository's commit."""
        return self._objects(index)[-1].id.decode()

    def _objects(self, index: int) -> list[ShaFile]:
        blob, tree = Blob.from_string(self.readme(index)), Tree()
        tree.add(README.encode(), REGULAR, blob.id)
        author = Person("Fleet", "fleet@acme.example", int(self.created_at))
        commit = commit_object(tree.id.decode(), (), f"Add {self.name(index)}", author, author)
        return [blob, tree, commit]


class GeneratedRevision:
    """The one commit of a generated repository (`revision.Revision`)."""

    __slots__ = ("_fleet", "_index", "_readme", "_sha", "name")

    def __init__(self, fleet: Fleet, index: int, name: str) -> None:
        self._fleet, self._index, self.name = fleet, index, name
        self._readme = fleet.readme(index)
        self._sha = hashlib.sha1(b"blob %d\0%b" % (len(self._readme), self._readme), usedforsecurity=False)

    @property
    def changed_at(self) -> float:
        """When the commit was made (UTC epoch seconds)."""
        return self._fleet.created_at

    @property
    def commit_sha(self) -> str:
        """The sha of the commit."""
        return self._fleet.commit_sha(self._index)

    def entry(self, path: str) -> Entry | None:
        """Return what stands at `path`: the root, the README, or None."""
        if path == README:
            return Entry(path, REGULAR, self._sha.hexdigest())
        if path:
            return None
        tree = b"100644 %b\0%b" % (README.encode(), self._sha.digest())
        return Entry("", DIRECTORY, hashlib.sha1(b"tree %d\0%b" % (len(tree), tree), usedforsecurity=False).hexdigest())

    def entries(self, directory: Entry) -> list[Entry]:
        """Return what the root, the only directory, holds: the README."""
        return [] if directory.path else [Entry(README, REGULAR, self._sha.hexdigest())]

    def size(self, entry: Entry) -> int:
        """Return the size of the README (bytes); 0 for the root."""
        return len(self._readme) if entry.kind is Kind.FILE else 0

    def read(self, entry: Entry) -> bytes:
        """Return the bytes of the README.

        Raises:
            KeyError: the entry is not the README.
        """
        if entry.sha != self._sha.hexdigest():
            raise KeyError(entry.sha)
        return self._readme
