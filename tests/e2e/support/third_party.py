"""An operation of somebody else's: a package of its own, as `pip` leaves it, found through its entry point."""

from pathlib import Path

MODULE = '''
"""What repositories hold."""

from typing import ClassVar

from bulk import Item, Operation, Request
from bulk.model import ErrorCode, failed, succeeded


class CountItem(Item, frozen=True, kw_only=True):
    """Which repository."""

    owner: str
    repo: str


class CountFiles(Operation[CountItem]):
    """Count what the root of a repository holds."""

    name = "acme-files.count"
    Item = CountItem
    example: ClassVar = {"owner": "acme-eng", "repo": "hello-world"}

    def steps(self, item):
        path = f"/repos/{item.owner}/{item.repo}/contents/"
        reply = yield Request(method="GET", path=path, accept=frozenset((200, 404)))
        if reply.status == 404:
            return failed(ErrorCode.NOT_FOUND, "no such repository", http_status=404)
        return succeeded({"files": len(reply.body)})
'''

METADATA = "Metadata-Version: 2.1\nName: acme-bulk-operations\nVersion: 1.0\n"
ENTRY_POINTS = "[bulk.operations]\nacme-files.count = acme_operations:CountFiles\n"


def install(folder: Path) -> Path:
    """Put the package into `folder`, which then goes onto PYTHONPATH."""
    info = folder / "acme_bulk_operations-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "acme_operations.py").write_text(MODULE)
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder
