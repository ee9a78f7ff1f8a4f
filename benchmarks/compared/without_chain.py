"""The command `bulk` without the digest chain of its ledger, to be compared with: nothing that anybody should use.

python -m benchmarks.compared.without_chain run MANIFEST ...
"""

import sys

from bulk.cli import main
from bulk.ledger.digests import chain


def _no_leaves(*_: object) -> list[bytes]:
    return []


def leave_out_the_chain() -> None:
    """Let no leaf and no link be made from now on."""
    chain.row_leaves = _no_leaves  # type: ignore[assignment]
    chain.ended_leaves = _no_leaves  # type: ignore[assignment]


if __name__ == "__main__":
    leave_out_the_chain()
    sys.exit(main())
