"""A cache of objects that were read from repositories, bounded by bytes. Git objects never change, so none is stale."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable


class ObjectCache:
    """Values by key; the least recently used ones leave first. May be used from several threads.

    Args:
        limit_bytes: the sum of the weights that stay (bytes).
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes, self._held_bytes = limit_bytes, 0
        self._entries: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> object | None:
        """Return the value of a key, or None."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: object, weight_bytes: int) -> None:
        """Keep a value that takes about `weight_bytes`; a value heavier than the whole cache is not kept."""
        with self._lock:
            before = self._entries.pop(key, None)
            if before is not None:
                self._held_bytes -= before[1]
            if weight_bytes > self._limit_bytes:
                return
            self._entries[key] = (value, weight_bytes)
            self._held_bytes += weight_bytes
            while self._held_bytes > self._limit_bytes:
                self._held_bytes -= self._entries.popitem(last=False)[1][1]

    @property
    def held_bytes(self) -> int:
        """The sum of the weights that are kept now."""
        return self._held_bytes
