"""The bytes of answers that are in memory at once: a bound that only one holder at a time may exceed. Pure waiting.

An answer that fits is let in at once. Another one waits until it fits, or until its holder is the one that may exceed
the bound; so a holder that is alone always gets on, however large its answer is. Others, which hold permits, wait for
the holder that exceeds it: so that holder has to `step_aside` before it waits for anything but the disk, and no holder
waits for ever.
"""

from collections import deque

import anyio


class MemoryBudget:
    """Bounds the memory that bodies of answers take together.

    Args:
        total_bytes: bytes that there is room for, apart from the holder that may exceed them.
    """

    def __init__(self, total_bytes: int) -> None:
        self._total = total_bytes
        self._held: dict[object, int] = {}
        self._beyond: object | None = None
        self._waiting: deque[tuple[object, int, anyio.Event]] = deque()
        self.used_bytes = 0

    def __contains__(self, holder: object) -> bool:
        return holder in self._held

    def take_nowait(self, holder: object, size_bytes: int) -> bool:
        """Take `size_bytes` more for `holder` if they fit, and return whether they did."""
        if self.used_bytes + size_bytes > self._total and holder is not self._beyond:
            return False
        self._add(holder, size_bytes)
        return True

    async def take(self, holder: object, size_bytes: int) -> None:
        """Take `size_bytes` more for `holder`, as soon as they fit or no other holder exceeds the bound."""
        if self.take_nowait(holder, size_bytes):
            return
        if self._beyond is None:
            self._beyond = holder
            self._add(holder, size_bytes)
            return
        waiting = (holder, size_bytes, anyio.Event())
        self._waiting.append(waiting)
        try:
            await waiting[2].wait()
        except BaseException:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            raise

    def give(self, holder: object) -> None:
        """Give back all bytes that `holder` took, if any, because its work is done."""
        self.used_bytes -= self._held.pop(holder, 0)
        if self._beyond is holder:
            self._beyond = None
        self._let_in()

    def step_aside(self, holder: object) -> None:
        """Note that `holder` is going to wait for something else.

        It keeps the bytes that it has, and the next holder may exceed the bound.
        """
        if self._beyond is holder:
            self._beyond = None
            self._let_in()

    def pass_on(self, giver: object, taker: object) -> None:
        """Let the bytes that `giver` holds belong to `taker` from now on."""
        self._held[taker] = self._held.get(taker, 0) + self._held.pop(giver)

    def _add(self, holder: object, size_bytes: int) -> None:
        self._held[holder] = self._held.get(holder, 0) + size_bytes
        self.used_bytes += size_bytes

    def _let_in(self) -> None:
        while self._waiting:
            holder, size_bytes, is_in = self._waiting[0]
            if not self.take_nowait(holder, size_bytes):
                if self._beyond is not None:
                    return
                self._beyond = holder
                self._add(holder, size_bytes)
            self._waiting.popleft()
            is_in.set()
