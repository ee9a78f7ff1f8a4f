"""The base class of operations, and the search for installed ones (entry points of the group `bulk.operations`).

An operation is a class without I/O: its generators yield Requests, are sent Replies and return how the item ended. It
never sleeps, retries, paces, logs in or touches a socket; all that lives once, in the engine. So a test, a plan and the
documentation read it as data. The smallest one is twenty lines: see `jobs/bulk_jobs/rate_limit.py`. What only some
operations need is in `capabilities.py`.
"""

import functools
from collections.abc import Generator, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec

from bulk.model import Lost, NotApplied, Outcome, Reply, Request, Undecided

GROUP = "bulk.operations"

MOST_NAME_CHARACTERS = 100
"""Longest name that is compared with the known ones, and the most that is shown of one (characters)."""

Steps: TypeAlias = Generator[Request, Reply, Outcome]
Settling: TypeAlias = Generator[Request, Reply, Outcome | NotApplied | Undecided]


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of one operation: one line of a data file. Subclasses add the platform's own names.

    Attributes:
        id: a string of the user's own, which comes back with the result.
    """

    id: str | None = None


ItemT = TypeVar("ItemT", bound=Item)


class ItemFlaw(msgspec.Struct, frozen=True):
    """A value that the types allow and the platform does not: `field` is dotted, `message` says what was expected."""

    field: str
    message: str


class Access(msgspec.Struct, frozen=True):
    """The rights that a token needs for an operation. Source: specification, Authentication.

    Attributes:
        scopes: a classic or OAuth token needs one of these; empty: any such token will do.
        permission: (name, `read`, `write` or `admin`) that fine-grained and App tokens need; None: they are refused.
        apps: whether tokens of Apps are accepted at all.
        is_for_site_admins: only a site administrator may use the operation.
        is_for_classic: of tokens with scopes only classic personal ones may use it, those of OAuth applications not.
    """

    scopes: tuple[str, ...] = ()
    permission: tuple[str, str] | None = None
    apps: bool = True
    is_for_site_admins: bool = False
    is_for_classic: bool = False


def owner_of(item: Item) -> tuple[str, str, str]:
    """Return (the account that an item belongs to, in lower case; its repository; its enterprise); empty where it names
    none."""
    owner = getattr(item, "owner", None) or getattr(item, "org", None)
    enterprise = "" if owner else getattr(item, "enterprise", None) or ""
    return str(owner or enterprise).casefold(), str(getattr(item, "repo", None) or ""), str(enterprise)


class Operation(Generic[ItemT]):
    """One thing that the platform can be asked to do. Subclasses are stateless; one instance serves a whole run.

    Attributes:
        name: `resource.verb`, as users type it.
        resource: `contents` of `contents.put`: lanes of different resources are different lanes.
        Item: the typed arguments; unknown fields and wrong types are refused with file and line.
        category: the rate-limit category that pays for it.
        is_read: the operation changes nothing, and needs no intent, no lane and no settling.
        is_momentary: the answer holds for the moment only, so that asking again has a point. Equal items of a job are
            sent once if they are reads of an operation that is not momentary.
        result_is_reply: if an item ended with the body of its only reply as its result, any other item that asks for
            the same and gets the same does so too: a body that a 304 confirms is written again without being decoded.
        is_irreversible: the effect can't be undone; the plan says so.
        most_requests: most requests of one item when no answer is lost (count); the budget is planned with it.
        least_requests: fewest of one item (count).
        unreported: fields left out of results, because they are large.
        access: the rights that a token needs; None: not known.
        settled_by: one sentence for the documentation: how a lost answer is settled.
        example: an item that works on the sandbox's standard data.
    """

    name: ClassVar[str]
    resource: ClassVar[str] = ""
    Item: ClassVar[type[Item]]
    category: ClassVar[str] = "core"
    is_read: ClassVar[bool] = True
    is_momentary: ClassVar[bool] = False
    result_is_reply: ClassVar[bool] = False
    is_irreversible: ClassVar[bool] = False
    least_requests: ClassVar[int] = 1
    most_requests: ClassVar[int] = 1
    unreported: ClassVar[frozenset[str]] = frozenset()
    access: ClassVar[Access | None] = None
    settled_by: ClassVar[str] = "Reads change nothing: the request is repeated."
    example: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.resource = getattr(cls, "name", "").partition(".")[0]

    def check(self, item: ItemT) -> Iterator[ItemFlaw]:
        """Return all flaws of `item` that the platform would refuse and that can be found without asking it."""
        return iter(())

    def lanes(self, item: ItemT) -> tuple[str, ...]:
        """Return the things that `item` writes, such as `acme/api`. Items that write the same thing go one at a time.

        They go in manifest order. The engine folds the case and puts the resource in front. Reads have no lanes.
        """
        return ()

    def steps(self, item: ItemT) -> Steps:
        """Yield the requests of `item`, one after the other; return its outcome. Files and secrets are already
        inline."""
        raise TypeError(f"{type(self).__name__} lacks steps()")

    def settle(self, item: ItemT, lost: Lost) -> Settling:
        """Find out by reading whether `lost` was applied. Yield only reads, all of them `is_fresh`.

        Return an Outcome if the truth is known, NotApplied if there is no trace of the write, Undecided if reading
        can't tell. The engine repeats this as long as that can change, and starts `steps` again after NotApplied.
        """
        raise TypeError(f"{type(self).__name__} writes and lacks settle()")


AnyOperation: TypeAlias = Operation[Any]


class UnknownOperation(LookupError):
    """No installed operation has this name; the message names the nearest ones."""


@functools.cache
def _installed() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def names() -> list[str]:
    """Return names of all installed operations, sorted."""
    return sorted(_installed())


@functools.cache
def find(name: str) -> AnyOperation:
    """Return the operation of that name; its module is imported only now.

    Raises:
        UnknownOperation: no operation of that name is installed, or it can't be used.
    """
    try:
        point = _installed()[name]
    except KeyError:
        raise UnknownOperation(_unknown(name)) from None
    try:
        operation = point.load()()
    except (ImportError, AttributeError, TypeError) as error:
        raise UnknownOperation(f"operation {name!r} is installed, but {point.value} can't be used: {error}") from error
    if not isinstance(operation, Operation) or operation.name != name:
        raise UnknownOperation(f"the entry point {name!r} ({point.value}) is not an operation of that name")
    return operation


def _unknown(name: str) -> str:
    import difflib

    is_long = len(name) > MOST_NAME_CHARACTERS
    near = [] if is_long else difflib.get_close_matches(name, names(), n=2, cutoff=0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; `bulk operations` lists them"
    return f"unknown operation {name[:MOST_NAME_CHARACTERS] + '…' if is_long else name!r}{hint}"
