"""Operations for tests alone: they send what a test wants, and may have bugs.

`installed` makes them known as if a package had brought them.
"""

import contextlib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any, ClassVar, Final
from unittest import mock

from bulk import operation
from bulk.model import Effect, Lost, NotApplied, Request, Undecided, succeeded
from bulk.operation import GROUP, Item, Operation, Settling, Steps
from bulk.sandbox.settings import DEFAULT_RATE_LIMITS


class ProbeItem(Item, frozen=True, kw_only=True):
    """What a probe does.

    Attributes:
        bug: name of the exception that is raised, and `when`: before the first request, after it, while settling.
    """

    name: str
    bug: str = ""
    when: str = ""


def _raise(item: ProbeItem, when: str) -> None:
    if item.when == when:
        errors = (RuntimeError, ValueError, KeyError, AssertionError, ZeroDivisionError, RecursionError, StopIteration)
        raise {error.__name__: error for error in errors}[item.bug]("a bug of the operation")


class ProbeRead(Operation[ProbeItem]):
    """Reads the README of hello-world."""

    name = "probe.read"
    Item = ProbeItem

    def steps(self, item: ProbeItem) -> Steps:
        _raise(item, "before")
        reply = yield Request(method="GET", path="/repos/acme-eng/hello-world/readme")
        _raise(item, "after")
        return succeeded({"status": reply.status})


class ProbeWrite(Operation[ProbeItem]):
    """Creates a file named after the item; reads it back when an answer was lost."""

    name = "probe.write"
    Item = ProbeItem
    is_read = False
    effect: ClassVar[Effect] = Effect.COMPARE_AND_SWAP

    def lanes(self, item: ProbeItem) -> tuple[str, ...]:
        return (item.name,)

    def _path(self, item: ProbeItem) -> str:
        return f"/repos/acme-eng/hello-world/contents/probe-{item.name}"

    def steps(self, item: ProbeItem) -> Steps:
        _raise(item, "before")
        body = {"message": "Probe", "content": "cHJvYmU="}
        reply = yield Request(
            method="PUT", path=self._path(item), body=body, effect=self.effect, accept=frozenset((201,))
        )
        _raise(item, "after")
        return succeeded({"status": reply.status})

    def settle(self, item: ProbeItem, lost: Lost) -> Settling:
        _raise(item, "settling")
        accept = frozenset((200, 404))
        reply = yield Request(method="GET", path=self._path(item), accept=accept, is_fresh=True)
        if reply.status == 200:
            return succeeded({"status": 201}, note="read back")
        return NotApplied("it is not there")


class ProbeCreate(ProbeWrite):
    """The same, as something that the platform might make twice."""

    name = "probe.create"
    effect = Effect.CREATE


class ProbeBlind(ProbeWrite):
    """The same, and nothing tells what happened."""

    name = "probe.blind"
    effect = Effect.CREATE

    def settle(self, item: ProbeItem, lost: Lost) -> Settling:
        yield Request(method="GET", path="/repos/acme-eng/hello-world/readme", is_fresh=True)
        return Undecided("nothing shows it")


class ProbeSet(ProbeWrite):
    """The same, as something that may be repeated blindly."""

    name = "probe.set"
    effect = Effect.SET

    def settle(self, item: ProbeItem, lost: Lost) -> Settling:
        yield from ()
        return Undecided("nothing shows it")


class ProbeMeddler(ProbeWrite):
    """Writes while it reads back, which the engine refuses."""

    name = "probe.meddle"

    def settle(self, item: ProbeItem, lost: Lost) -> Settling:
        yield Request(method="DELETE", path=self._path(item), effect=Effect.COMPARE_AND_SWAP)
        return NotApplied("never reached")


class PaidItem(Item, frozen=True, kw_only=True):
    """One request that a category pays."""

    number: str


class Paid(Operation[PaidItem]):
    """Spends one request of its category."""

    Item = PaidItem

    def steps(self, item: PaidItem) -> Steps:
        yield Request(method="GET", path=f"/paid/{self.category}/{item.number}")
        return succeeded(None)


PAID: Final = SimpleNamespace(
    **{
        category: type(f"Paid{place}", (Paid,), {"name": f"paid.{category.replace('_', '-')}", "category": category})
        for place, category in enumerate(DEFAULT_RATE_LIMITS)
    }
)
"""One operation for each category."""


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """The probes are found by their names."""
    kinds: tuple[type[Operation[Any]], ...] = (ProbeRead, ProbeWrite, ProbeCreate, ProbeBlind, ProbeSet, ProbeMeddler)
    points = {kind.name: EntryPoint(kind.name, f"{__name__}:{kind.__name__}", GROUP) for kind in kinds}
    points |= {
        kind.name: EntryPoint(kind.name, f"{__name__}:PAID.{category}", GROUP) for category, kind in vars(PAID).items()
    }
    found = {**operation._installed(), **points}
    with mock.patch.object(operation, "_installed", return_value=found):
        yield
