"""The folder beside a run directory, where a run that workers of this machine do has its store and all of their files.

The same command goes on from it wherever the last one was killed; when the results are in the run directory, the folder
goes. Every command that looks at a run directory asks for it, so that nothing here needs the client of PostgreSQL.
"""

import contextlib
import fcntl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bulk.errors import RunDirectoryError
from bulk.ledger.database import LEDGER
from bulk.ledger.view import LedgerView
from bulk.storage.private_files import DIRECTORY_MODE
from bulk.store.server.shared_server import remove

END = ".store"
"""Of the name of that folder; before it stands the run directory's."""


@dataclass(frozen=True, slots=True)
class Beside:
    """The folder beside a run directory.

    Attributes:
        folder: where its users meet. is_new: it was made for this command.
    """

    folder: Path
    is_new: bool

    @property
    def workers(self) -> Path:
        """Held by every worker that lives."""
        return self.folder / "workers"

    def of_worker(self, number: int) -> Path:
        """Return where a worker has its files."""
        return self.folder / f"worker-{number + 1}"

    def remove(self) -> None:
        """Take it away, and what the server has kept; blocks until that has ended."""
        remove(self.folder)


def folder_of(run_dir: Path) -> Path:
    """Return the folder beside a run directory; it need not be there."""
    place = run_dir.resolve()
    return place.with_name(place.name + END)


def is_under_way(run_dir: Path) -> bool:
    """Return whether workers do that run, so that it is not in its run directory yet."""
    return not (run_dir / LEDGER).exists() and folder_of(run_dir).is_dir()


def is_at_home(run_dir: Path) -> bool:
    """Return whether the results are in the run directory: what is left of the workers' run is taken away then."""
    if not (run_dir / LEDGER).exists() or LedgerView(run_dir).elsewhere():
        return False
    if folder_of(run_dir).is_dir():
        with held(run_dir) as beside:
            beside.remove()
    return True


@contextlib.contextmanager
def held(run_dir: Path) -> Iterator[Beside]:
    """Hold the folder beside a run directory; it is made where there is none.

    Raises:
        RunDirectoryError: another command has it, or it can't be made.
    """
    folder = folder_of(run_dir)
    is_new = not folder.is_dir()
    try:
        folder.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        with open(folder / "command", "ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunDirectoryError(f"{run_dir} is in use by another command; wait until it has ended") from None
            yield Beside(folder, is_new)
    except OSError as error:
        raise RunDirectoryError(f"{error.filename or folder}: {error.strerror}") from error
