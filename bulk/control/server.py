"""The side of the process that drives the run: it makes the socket, checks who asks, and hands questions to the run.

Nothing here may end the run: an error closes a connection, or is a warning. A slow reader does not hold up the run:
lines that are not taken are left out.
"""

import contextlib
import logging
import os
import socket
from pathlib import Path
from typing import Protocol, Self

import anyio

from bulk.clock import Clock
from bulk.control.place import NAME, peer_uid, reachable, user_name
from bulk.control.protocol import (
    CONNECTIONS_MOST,
    IDLE_S,
    LINE_BYTES,
    WATCH_S,
    Answer,
    Ask,
    Refused,
    ask_of,
    line_of,
)
from bulk.storage.private_files import FILE_MODE

log = logging.getLogger("bulk.control")

_CHUNK_BYTES = 16 * 1024


class Steered(Protocol):
    """The run, as the server asks it; no method waits."""

    def answer(self, ask: Ask, who: str) -> Answer:
        """Do what is asked and return the answer; `who`: the user who asks, and by what.

        Raises:
            Refused: the verb is not done.
        """

    def refusal(self, refused: Refused) -> Answer:
        """Return the answer that tells of a refusal."""


class ControlServer:
    """The socket in `run_dir`, which the caller holds. A context manager: the socket is gone at its end.

    Args:
        user: the user (number) whose processes may ask; None: the user of this process.

    Attributes:
        is_open: whether there is a socket; if it can't be made, a warning says why.
    """

    def __init__(self, run_dir: Path, steered: Steered, clock: Clock, user: int | None = None) -> None:
        self._run_dir, self._steered, self._clock = run_dir, steered, clock
        self._listener: socket.socket | None = None
        self._connections, self._user = 0, os.geteuid() if user is None else user
        self.is_open, self._inode = False, 0

    def __enter__(self) -> Self:
        path = self._run_dir / NAME
        listener = self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            path.unlink(missing_ok=True)  # left by a process that was killed: no other process holds the directory
            with reachable(self._run_dir) as place:
                listener.bind(place)
                path.chmod(FILE_MODE)
            listener.listen(CONNECTIONS_MOST)
            listener.setblocking(False)
            self._inode = path.stat().st_ino
            self.is_open = True
        except OSError as error:
            reason = error.strerror or str(error)
            log.warning(
                "%s can't be made (%s): the run can't be steered from another terminal; signals stop it as ever",
                path,
                reason,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self._listener is not None:
            self._listener.close()  # only now: `serve` has ended

    def close(self) -> None:
        """Remove the socket file; may be called twice."""
        was_open, self.is_open = self.is_open, False
        if was_open:
            with contextlib.suppress(OSError):
                path = self._run_dir / NAME
                if path.stat().st_ino == self._inode:  # else the file is the next holder's
                    path.unlink()

    async def serve(self) -> None:
        """Answer each connection, until this task is cancelled."""
        listener = self._listener
        if listener is None or not self.is_open:
            return
        async with anyio.create_task_group() as tasks:
            while True:
                await anyio.wait_readable(listener)
                try:
                    connection, _ = listener.accept()
                except OSError:  # the connection has gone again, or too many files are open
                    await self._clock.sleep(WATCH_S)
                    continue
                connection.setblocking(False)
                tasks.start_soon(self._attend, connection)

    async def _attend(self, connection: socket.socket) -> None:
        self._connections += 1
        try:
            with connection, contextlib.suppress(OSError, anyio.ClosedResourceError):
                try:
                    who = self._known(connection)
                    if self._connections > CONNECTIONS_MOST:
                        raise Refused(f"{CONNECTIONS_MOST} are connected already", 5)
                    await self._converse(connection, who)
                except Refused as refused:
                    connection.send(line_of(self._steered.refusal(refused)))
        finally:
            self._connections -= 1

    def _known(self, connection: socket.socket) -> str:
        """Return the name of the user at the other end; refuse any but the run's user."""
        uid = peer_uid(connection)
        if uid != self._user:
            raise Refused("the run belongs to another user", 5)
        return user_name(uid)

    async def _converse(self, connection: socket.socket, user: str) -> None:
        pending = b""
        while True:
            while b"\n" not in pending:
                if len(pending) >= LINE_BYTES:
                    raise Refused(f"a request has at most {LINE_BYTES:,} bytes", 2)
                received = await self._receive(connection)
                if not received:
                    return None
                pending += received
            line, _, pending = pending.partition(b"\n")
            if len(line) >= LINE_BYTES:
                raise Refused(f"a request has at most {LINE_BYTES:,} bytes", 2)
            try:
                ask = ask_of(line)
                who = f"{user} ({ask.who[:40]})"
                if ask.verb == "watch":
                    return await self._show(connection, ask, who)
                answer = self._steered.answer(ask, who)
            except Refused as refused:
                answer = self._steered.refusal(refused)
            await self._send(connection, line_of(answer))

    async def _receive(self, connection: socket.socket) -> bytes:
        """Return the next bytes; empty at the end, and if none come for a while."""
        with anyio.move_on_after(IDLE_S):
            await anyio.wait_readable(connection)
            return connection.recv(_CHUNK_BYTES)
        return b""

    @staticmethod
    async def _send(connection: socket.socket, data: bytes) -> None:
        with anyio.move_on_after(IDLE_S):
            while data:
                await anyio.wait_writable(connection)
                data = data[connection.send(data) :]
        if data:
            raise OSError("nobody reads")

    async def _show(self, connection: socket.socket, ask: Ask, who: str) -> None:
        """Show a status line again and again; a line is begun only when the one before has been taken."""
        left = b""
        while True:
            if not left:
                left = line_of(self._steered.answer(ask, who))
            with contextlib.suppress(BlockingIOError):
                left = left[connection.send(left) :]
            with anyio.move_on_after(WATCH_S):
                await anyio.wait_readable(connection)
                if not connection.recv(_CHUNK_BYTES):
                    return
                await self._clock.sleep(WATCH_S)
