"""Bodies on their way that are too long for memory: private files in a folder of the run directory.

Calls that block run outside of the event loop, a few files at a time. A file has one owner, its item, and is removed
with it; files that a killed process left behind are removed before the next one begins. Source: failures.md rows 47,
64.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from bulk.model import BodyFile
from bulk.storage.disk_threads import Disk
from bulk.storage.private_files import DIRECTORY_MODE, open_private, stopped, write_all

ARRIVING = "arriving"
"""The folder's name; it is there only while the run goes on and a long body has come."""

AT_ONCE = 4
"""How many files are worked on at a time (count): more would only take threads from other work."""

_READ_BYTES = 1024 * 1024


class Spool:
    """The folder of spooled bodies.

    Args:
        run_dir: run directory, held by this process.
    """

    def __init__(self, run_dir: Path, disk: Disk) -> None:
        self._folder, self._disk = run_dir / ARRIVING, disk
        self._turns = anyio.Semaphore(AT_ONCE)
        self._is_made = False
        self._files = 0

    def clear(self) -> None:
        """Remove the folder with all that is in it, as far as the disk lets us; blocks."""
        if self._is_made or self._folder.exists():
            shutil.rmtree(self._folder, ignore_errors=True)
        self._is_made = False

    def new(self) -> "SpooledBody":
        """Return a file that nothing has been written to yet; it is created with its first bytes."""
        self._files += 1
        return SpooledBody(self, self._folder / str(self._files))

    async def remove(self, names: Sequence[str]) -> None:
        """Remove files that are not needed any more, if they were not moved away."""

        def unlink() -> None:
            for name in names:
                with contextlib.suppress(OSError):  # most were moved to their place
                    (self._folder.parent / name).unlink()

        await self._disk(unlink)  # the caller must not wait for the files of other items

    async def elsewhere(self, call: Callable[[], None]) -> None:
        """Run a call that blocks, when it is its turn.

        Raises:
            RunStopped: the disk refuses.
        """
        async with self._turns:
            try:
                await self._disk(call)
            except OSError as error:
                raise stopped(error, self._folder) from error

    def open(self, path: Path) -> int:
        """Return a descriptor of a new file; blocks."""
        if not self._is_made:
            with contextlib.suppress(FileExistsError):
                self._folder.mkdir(mode=DIRECTORY_MODE)
            if self._folder.is_symlink():
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            self._folder.chmod(DIRECTORY_MODE)
            self._is_made = True
        return open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)


class SpooledBody:
    """A file that is written, and then either sealed or read and dropped.

    A cancelled task may leave while a thread still writes: the lock keeps the file open while it is written to.
    All methods raise RunStopped if the disk refuses.
    """

    def __init__(self, arrivals: Spool, path: Path) -> None:
        self._arrivals, self._path, self._lock = arrivals, path, threading.Lock()
        self._fd, self._is_over = -1, False
        self.name = f"{ARRIVING}/{path.name}"

    async def write(self, block: bytes) -> None:
        """Add `block` at the end."""

        def write() -> None:
            if self._fd < 0:
                self._fd = self._arrivals.open(self._path)
            write_all(self._fd, block)

        await self._do(write)

    async def seal(self, size_bytes: int, *, is_durable: bool) -> BodyFile:
        """Return the complete file as a BodyFile to hand on.

        Args:
            is_durable: the content is on the disk when this returns, as far as the system can tell.
        """
        sha256, git = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size_bytes, usedforsecurity=False)

        def seal() -> None:
            if is_durable:
                os.fdatasync(self._fd)
            block, position = bytearray(_READ_BYTES), 0
            while size := os.preadv(self._fd, [block], position):
                part = memoryview(block)[:size]
                sha256.update(part)
                git.update(part)
                position += size
            self._close()

        await self._do(seal)
        return BodyFile(name=self.name, size_bytes=size_bytes, sha256=sha256.hexdigest(), blob_sha=git.hexdigest())

    async def read(self) -> bytes:
        """Return all bytes that were written, and remove the file."""
        found: list[bytes] = []

        def read() -> None:
            self._close()
            found.append(self._path.read_bytes())
            self._path.unlink()

        await self._do(read)
        return found[0]

    def drop(self) -> None:
        """Remove the file, whatever became of it, after the block that is being written."""
        with self._lock:
            self._is_over = True
            self._close()
            self._path.unlink(missing_ok=True)

    async def _do(self, call: Callable[[], None]) -> None:
        def locked() -> None:
            with self._lock:
                if not self._is_over:
                    call()

        await self._arrivals.elsewhere(locked)

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
