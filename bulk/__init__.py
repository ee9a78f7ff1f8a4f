"""Bulk: an asynchronous bulk operations engine for self-managed code-hosting platforms.

A program uses `Engine`, or `run` and `map` without async, and the names beside them. A reader of the code begins with
the README, `engine/commands.py` and `engine/run.py`, and then follows an item: `manifest/`, `items/`, `check/`,
`schedule/`, `execute/`, `govern/`, `platform/`, `ledger/`, `report/`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import would take Ctrl-C as a crash (`cli/__init__.py`)
if TYPE_CHECKING:
    from typing import Any

    from bulk.capabilities import Returns as Returns
    from bulk.engine.library.engine import Engine as Engine
    from bulk.engine.library.finished_item import FinishedItem as FinishedItem
    from bulk.engine.library.settings import EngineSettings as EngineSettings
    from bulk.engine.library.synchronous import map as map  # noqa: A004 - it is `bulk.map`
    from bulk.engine.library.synchronous import run as run
    from bulk.errors import BudgetTooSmall as BudgetTooSmall
    from bulk.errors import BulkError as BulkError
    from bulk.errors import CredentialMissing as CredentialMissing
    from bulk.errors import CredentialRefused as CredentialRefused
    from bulk.errors import Flaw as Flaw
    from bulk.errors import GateClosed as GateClosed
    from bulk.errors import Interrupted as Interrupted
    from bulk.errors import ManifestError as ManifestError
    from bulk.errors import RunDirectoryError as RunDirectoryError
    from bulk.errors import RunStopped as RunStopped
    from bulk.errors import UsageError as UsageError
    from bulk.ledger.records import Finished as Finished
    from bulk.model import ErrorCode as ErrorCode
    from bulk.model import ItemError as ItemError
    from bulk.model import Outcome as Outcome
    from bulk.model import OutcomeKind as OutcomeKind
    from bulk.model import Reply as Reply
    from bulk.model import Request as Request
    from bulk.operation import Item as Item
    from bulk.operation import Operation as Operation
    from bulk.report.record import Report as Report
    from bulk.status import BucketStatus as BucketStatus
    from bulk.status import JobStatus as JobStatus
    from bulk.status import RunStatus as RunStatus
    from bulk.status import Wait as Wait

    __version__: str

_HOMES = {
    "bulk.capabilities": ("Returns",),
    "bulk.engine.library.engine": ("Engine",),
    "bulk.engine.library.finished_item": ("FinishedItem",),
    "bulk.engine.library.settings": ("EngineSettings",),
    "bulk.engine.library.synchronous": ("map", "run"),
    "bulk.errors": (
        "BudgetTooSmall",
        "BulkError",
        "CredentialMissing",
        "CredentialRefused",
        "Flaw",
        "GateClosed",
        "Interrupted",
        "ManifestError",
        "RunDirectoryError",
        "RunStopped",
        "UsageError",
    ),
    "bulk.ledger.records": ("Finished",),
    "bulk.model": ("ErrorCode", "ItemError", "Outcome", "OutcomeKind", "Reply", "Request"),
    "bulk.operation": ("Item", "Operation"),
    "bulk.report.record": ("Report",),
    "bulk.status": ("BucketStatus", "JobStatus", "RunStatus", "Wait"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_HOME_OF, "__version__"]  # noqa: PLE0604 - names of the table above, all of them texts


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that `bulk --help` does not wait for the engine."""
    import importlib

    if name == "__version__":
        from importlib.metadata import version

        return version("bulkops")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
