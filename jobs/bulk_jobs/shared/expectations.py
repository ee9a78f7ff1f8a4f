"""What an item expects to find before it writes: where it is otherwise, somebody else has changed it, and it stays.

`bulk undo` fills it with what the run has left. Files have the same in their `sha`.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from bulk.model import ErrorCode, Outcome, failed

Expect = Annotated[
    dict[str, Any],
    Meta(
        description="fields as they must be shown right before the write, else it is a conflict and nothing is written"
    ),
]


def conflict(what: str, differing: Sequence[str]) -> Outcome | None:
    """Return how an item ends of which these fields are not as expected; None where there are none."""
    if not differing:
        return None
    fields = ", ".join(differing)
    return failed(ErrorCode.CONFLICT, f"{what} is not as expected ({fields}): somebody else changed it, so it stays")
