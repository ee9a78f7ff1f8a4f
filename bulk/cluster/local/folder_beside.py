"""The folder beside a run directory, where a run that workers of this machine do has its store and all of their files.

If a command is killed, the same command goes on from this folder; when the results are in the run directory, the folder
is deleted. Every command that looks at a run directory uses this module, so it does not need the client of PostgreSQL.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bulk.errors import RunDirectoryError
from bulk.ledger.database import LEDGER
from bulk.ledger.view import LedgerView
from bulk.storage.locks import try_lock
from bulk.storage.private_files import DIRECTORY_MODE
from bulk.store.server.shared_server import remove

END = ".store"
"""The end of the folder's name, which follows the name of the run directory."""


@dataclass(frozen=True, slots=True)
class Beside:
    """The folder beside a run directory.

    Attributes:
        folder: the folder where the users of its server meet. is_new: whether it was made for this command.
    """

    folder: Path
    is_new: bool

    @property
    def workers(self) -> Path:
        """The file that every living worker holds locked."""
        return self.folder / "workers"

    def of_worker(self, number: int) -> Path:
        """Return the folder of a worker; numbers count from 0."""
        return self.folder / f"worker-{number + 1}"

    def remove(self) -> None:
        """Delete the folder and the data of its server; blocks until the server has ended."""
        remove(self.folder)


def folder_of(run_dir: Path) -> Path:
    """Return the folder beside a run directory; it need not be there.

    Raises:
        RunDirectoryError: `run_dir` is the root folder, beside which there can be none.
    """
    place = run_dir.resolve()
    if not place.name:
        raise RunDirectoryError(f"{run_dir} is not a run directory: it is the root folder; name the directory of a run")
    return place.with_name(place.name + END)


def is_under_way(run_dir: Path) -> bool:
    """Return whether workers are doing that run, so that it is not in its run directory yet."""
    return not (run_dir / LEDGER).exists() and folder_of(run_dir).is_dir()


def is_at_home(run_dir: Path) -> bool:
    """Return whether the results are in the run directory; the folder beside it is deleted then."""
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
        RunDirectoryError: another command has the folder, or the folder can't be made.
    """
    folder = folder_of(run_dir)
    is_new = not folder.is_dir()
    try:
        folder.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        with open(folder / "command", "ab") as file:
            if not try_lock(file.fileno()):
                raise RunDirectoryError(f"{run_dir} is in use by another command; wait until it has ended")
            yield Beside(folder, is_new)
    except OSError as error:
        raise RunDirectoryError(f"{error.filename or folder}: {error.strerror}") from error
