"""Bodies on their way that are too long for memory: private files in a folder of the run directory.

All that blocks is done elsewhere than on the event loop, a few files at a time. A file has one owner, its item, and
goes with it; what a killed process left behind is removed before the next one begins. Source: failures.md rows 47, 64.
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
"""So many files are worked on at a time: more only take threads from others."""

_READ_BYTES = 1024 * 1024


class Spool:
    """The folder.

    Args:
        run_dir: held by this process.
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
        """Return a file that nothing has been written to yet; it is made with its first bytes."""
        self._files += 1
        return SpooledBody(self, self._folder / str(self._files))

    async def remove(self, names: Sequence[str]) -> None:
        """Remove files that nobody needs any more and that were not moved away."""

        def unlink() -> None:
            for name in names:
                with contextlib.suppress(OSError):  # most were moved to their place
                    (self._folder.parent / name).unlink()

        await self._disk(unlink)  # whoever waits for this must not wait for the files of others

    async def elsewhere(self, call: Callable[[], None]) -> None:
        """Run what blocks, when it is its turn.

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

    Whoever is cancelled may leave while a thread still writes: the lock lets nobody close what is being written to.
    All methods raise RunStopped where the disk refuses.
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
        """Return what was written, as something to hand on; it is complete.

        Args:
            is_durable: its content is on the disk when this returns, as far as the system can tell.
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
        """Return all that was written; the file is gone then."""
        found: list[bytes] = []

        def read() -> None:
            self._close()
            found.append(self._path.read_bytes())
            self._path.unlink()

        await self._do(read)
        return found[0]

    def drop(self) -> None:
        """Remove it, whatever became of it; what is being written is waited for, which is a block."""
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
