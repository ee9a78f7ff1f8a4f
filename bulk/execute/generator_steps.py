"""Advances an operation's generator by one step: a bug in the operation ends its item, and never the run.

Source: design.md §3, §10; failures.md row 76.
"""

from collections.abc import Generator
from typing import TypeVar

from bulk.model import Reply, Request

T = TypeVar("T")


class OperationFlaw(Exception):
    """An operation raised something: an answer is not what the specification says, or the operation has a bug."""


def advance(steps: Generator[Request, Reply, T], reply: Reply | None, ends: type[T] | tuple[type, ...]) -> Request | T:
    """Return the next request of the steps, or the value that they ended with.

    Args:
        reply: the answer to the last request; None at the beginning.
        ends: the types of values that the steps may end with.

    Raises:
        OperationFlaw: the operation raised; the cause is attached.
    """
    try:
        return next(steps) if reply is None else steps.send(reply)
    except StopIteration as end:
        value: T = end.value
    except MemoryError:
        raise  # a lack of the machine, and no flaw of the item
    except Exception as flaw:
        raise OperationFlaw(f"{type(flaw).__name__}: {flaw}") from flaw
    if not isinstance(value, ends):
        raise OperationFlaw(f"it ended with {type(value).__name__} instead of an outcome")
    return value
