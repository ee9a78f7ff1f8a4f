"""What an answer of success has to show before it is believed.

A gateway answers 200 to anything, and a cache may send the answer to another client's request. So a status alone proves
nothing where the specification shows a body: an operation says of each request what its answer holds, and which fields
name the item. An answer without these is a `bad_response`: a read is repeated, and a write is settled by reading.
"""

from collections.abc import Callable
from typing import Any

Check = Callable[[Any], str]
"""Takes a Reply of success; returns what is wrong with it, such as `it names no id`, or an empty text."""

Mark = Callable[[Any], str]
"""Takes a Reply of success; returns a text that the answer to no other write of the run can show."""


class Proof:
    """What an answer of success must show to be believed.

    Attributes:
        shape: checks that the answer is of the kind that the specification shows.
        identity: checks that the answer is about this item; None: nothing in the answer names the item.
        mark: returns what only one answer to a write shows, such as a commit; None: it shows nothing of the kind.
    """

    __slots__ = ("identity", "mark", "shape")

    def __init__(self, shape: Check, identity: Check | None = None, mark: Mark | None = None) -> None:
        self.shape, self.identity, self.mark = shape, identity, mark

    def flaw(self, reply: Any) -> str:
        """Return what is wrong with an answer; empty: it proves what was asked for. Never raises."""
        try:
            flaw = self.shape(reply)
            return self.identity(reply) if self.identity is not None and not flaw else flaw
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            return f"it can't be understood ({type(error).__name__})"

    def elsewhere(self) -> "Proof":
        """Return the proof for an answer to which the platform led by a redirect: without `identity`, because things
        may have other names there."""
        return Proof(self.shape)
