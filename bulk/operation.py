"""What an operation is, and how installed ones are found (entry points of the group `bulk.operations`).

An operation is a class without I/O: its generators yield Requests, are sent Replies and return how the item ended. It
never sleeps, retries, paces, logs in or touches a socket; all that lives once, in the engine. So a test, a plan and the
documentation read it as data. The smallest one is twenty lines: see `jobs/bulk_jobs/rate_limit.py`.
"""

import functools
from collections.abc import Generator, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec

from bulk.model import Lost, NotApplied, Outcome, Reply, Request, Undecided

GROUP = "bulk.operations"

MOST_NAME_CHARACTERS = 100
"""Longest name that is compared with the known ones, and the most that is shown of one (characters)."""

Steps: TypeAlias = Generator[Request, Reply, Outcome]
Settling: TypeAlias = Generator[Request, Reply, Outcome | NotApplied | Undecided]
CombinedSteps: TypeAlias = Generator[Request, Reply, list[Outcome | None]]


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


class Conflict(msgspec.Struct, frozen=True):
    """Two items of one manifest that can't both be meant.

    Attributes:
        message: said of the later item: what can't be meant, and the way out; `{other}` stands for the earlier one.
        may_insist: `allow_overwrites: true` on the later item's job lets it pass, or that it needs the other's.
    """

    message: str
    may_insist: bool = False


class FileError(ValueError):
    """What a `content_file` (or the like) holds can't be sent; the message says why."""


class Operation(Generic[ItemT]):
    """One thing that the platform can be asked to do. Subclasses are stateless; one instance serves a whole run.

    Attributes:
        name: `resource.verb`, as users type it.
        resource: `contents` of `contents.put`: lanes of different resources are different lanes.
        Item: the typed arguments; unknown fields and wrong types are refused with file and line.
        category: the rate-limit category that pays for it.
        is_read: changes nothing, needs no intent, no lane and no settling.
        is_momentary: its answer is of the moment, so that asking again has a point: of a read that is not, equal items
            of a job are sent once.
        result_is_reply: where an item ended with the body of its only reply as its result, any other item that asks for
            the same and gets the same does so too: what a 304 confirms is written down again without being decoded.
        is_irreversible: the plan says so.
        most_requests: most requests of one item when no answer is lost (count); the budget is planned with it.
        least_requests: fewest of one item (count).
        file_fields: field that names a file -> field that holds the same inline, as `content_file` -> `content`.
        keeps_only_last: of the items of a lane the last one alone counts, so that the ones before it aren't sent.
        most_combined: most that a combined request holds (see `size_combined`; count); 0: items are never combined.
        unreported: fields left out of results, because they are large.
        secret_fields: dotted fields that hold a secret; `env:NAME` or `file:PATH` in a manifest, never reported.
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
    file_fields: ClassVar[Mapping[str, str]] = {}
    keeps_only_last: ClassVar[bool] = False
    most_combined: ClassVar[int] = 0
    unreported: ClassVar[frozenset[str]] = frozenset()
    secret_fields: ClassVar[frozenset[str]] = frozenset()
    settled_by: ClassVar[str] = "Reads change nothing: the request is repeated."
    example: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.resource = getattr(cls, "name", "").partition(".")[0]

    def check(self, item: ItemT) -> Iterator[ItemFlaw]:
        """Everything about `item` that the platform would refuse and that can be known without asking it."""
        return iter(())

    def lanes(self, item: ItemT) -> tuple[str, ...]:
        """The things that `item` writes, such as `acme/api`: one item at a time for each, in manifest order.

        Case is folded and the resource put in front by the engine. Reads have none.
        """
        return ()

    def identities(self, item: ItemT) -> tuple[str, ...]:
        """The things whose state `item` decides, such as one file: where two items share one, `conflict` is asked.

        They are compared as they are, among the operations of one resource: fold the case where it does not matter.
        """
        return ()

    def conflict(self, earlier: object, later: ItemT) -> Conflict | None:
        """Why `later` can't be meant to follow `earlier`, the item before it that shares an identity with it.

        Args:
            earlier: an item of this or another operation of the resource, different from `later`.
        """
        return None

    def new_names(self, item: ItemT) -> tuple[str, ...]:
        """Names that `item` brings into the world: the plan tells of two that look alike."""
        return ()

    def collection(self, item: ItemT) -> str:
        """The path below which what `item` creates lies by its number, as `/orgs/acme/hooks`; percent-encoded.

        What lies there is waited for if it can't be seen at once, and counts as explained. Empty: nothing has a number.
        """
        return ""

    def with_file(self, item: ItemT, field: str, data: bytes) -> ItemT:
        """`item` with the content of the file that `field` names put in its inline field.

        Raises:
            FileError: `data` is not what this field may hold.
        """
        raise FileError(f"{self.name} takes no file in {field}")

    def planned(self, item: ItemT, began_at: float) -> ItemT:
        """`item` with what has to be fixed before it is first sent, so that a repeat asks for the same; item as it is.

        Args:
            began_at: when the run was begun (UTC epoch seconds, platform time); a resume or a retry gives the same.
        """
        return item

    def steps(self, item: ItemT) -> Steps:
        """The requests of `item`, one after the other; returns how it ended. Files and secrets are already inline."""
        raise TypeError(f"{type(self).__name__} lacks steps()")

    def steps_after(self, item: ItemT, left: str | None, lag_s: float) -> Steps:
        """As `steps`, where an earlier item of this run has just left that under the first of `identities` (as `left`
        tells it): for `lag_s` more seconds what a read shows may be older."""
        return self.steps(item)

    def left(self, item: ItemT, outcome: Outcome) -> str | None:
        """What stands under the first of `identities` now that `item` has ended so, such as a blob; empty: nothing;
        None: that can't be told. Only writes that the platform compares with what is there have an answer."""
        return None

    def size_combined(self, item: ItemT) -> int:
        """What `item` takes of a combined request (count, 1 or more); at most `most_combined` go together."""
        return 1

    def steps_combined(self, items: Sequence[ItemT]) -> CombinedSteps:
        """As `steps`, for items of one job that stand one behind the other in their lane: fewer requests for all.

        It is only for writes that may be repeated (`Effect.SET`). A write says in `Request.shared_by` for which items
        it is sent. Returns an outcome for each item, or None for those that have to be tried by themselves: their
        `steps` come next. The same follows for all without an outcome where the platform refuses a request; where the
        answer to a write is lost, each of the items that share it is settled by its own `settle`.
        """
        raise TypeError(f"{type(self).__name__} combines and lacks steps_combined()")

    def settle(self, item: ItemT, lost: Lost) -> Settling:
        """Find out by reading whether `lost` was applied. Only reads, all of them `is_fresh`.

        Returns an Outcome where the truth is known, NotApplied where no trace of it is there, Undecided where reading
        can't tell. The engine repeats it as long as that can change, and starts `steps` again after NotApplied.
        """
        raise TypeError(f"{type(self).__name__} writes and lacks settle()")

    def saved_bytes(self, outcome: Outcome) -> bytes:
        """What `save` writes: the outcome's payload, or its result as JSON; operations on files decode content.

        It is not asked where the payload is a BodyFile, which is moved to its place.
        """
        if isinstance(outcome.payload, bytes):
            return outcome.payload
        return msgspec.json.format(msgspec.json.encode(outcome.result), indent=2) + b"\n"


AnyOperation: TypeAlias = Operation[Any]


class UnknownOperation(LookupError):
    """No installed operation has this name; the message names the nearest ones."""


@functools.cache
def _installed() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def names() -> list[str]:
    """Names of all installed operations, sorted."""
    return sorted(_installed())


@functools.cache
def find(name: str) -> AnyOperation:
    """The operation of that name; its module is imported only now.

    Raises:
        UnknownOperation: there is none.
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
    near = [] if is_long else difflib.get_close_matches(name, names(), n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; `bulk operations` lists them"
    return f"unknown operation {name[:MOST_NAME_CHARACTERS] + '…' if is_long else name!r}{hint}"
