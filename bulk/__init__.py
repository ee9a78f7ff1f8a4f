"""Bulk: an asynchronous bulk operations engine for self-managed code-hosting platforms.

A program uses `Engine` and the names beside it. A reader of the code begins with the README and `engine/run.py`, and
then follows an item: `manifest`, `items`, `check`, `schedule`, `execute`, `govern`, `platform`, `ledger`, `report`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bulk.engine.library import Engine as Engine
    from bulk.errors import BulkError as BulkError
    from bulk.finished import Finished as Finished
    from bulk.model import Outcome as Outcome
    from bulk.model import Reply as Reply
    from bulk.model import Request as Request
    from bulk.operation import Item as Item
    from bulk.operation import Operation as Operation

_HOMES = {
    "BulkError": "bulk.errors",
    "Engine": "bulk.engine.library",
    "Finished": "bulk.finished",
    "Item": "bulk.operation",
    "Operation": "bulk.operation",
    "Outcome": "bulk.model",
    "Reply": "bulk.model",
    "Request": "bulk.model",
}

__all__ = ["BulkError", "Engine", "Finished", "Item", "Operation", "Outcome", "Reply", "Request"]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `bulk --help` does not wait for the engine."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
