"""Mixins for operations that need more than `Operation`; each has the members that belong together.

An operation inherits from those that it needs, as in `CreatesNames[CreateWebhookItem]`; the engine asks `isinstance`.
"""

import functools
import hashlib
from collections.abc import Collection, Generator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, get_args, get_origin

import msgspec

from bulk.model import Outcome, Reply, Request
from bulk.operation import AnyOperation, ItemT, Operation, Steps

CombinedSteps: TypeAlias = Generator[Request, Reply, list[Outcome | None]]
ResultT = TypeVar("ResultT")


VOLATILE = frozenset({"url", "*.url", "*_url", "_links", "*._links", "node_id", "*.node_id"})
"""Fields whose changes do not count, unless an operation says otherwise: addresses, and the platform's own keys."""


class Returns(Generic[ResultT]):
    """Declares the type of `result` of an item that succeeded or was unchanged, as in `Returns[Webhook]`.

    Type checkers read it: `Engine.map(CreateWebhook, …)` gives results of that type. So do tables of results, whose
    columns are the fields of the type. A result is decoded JSON, so that the type of an object is a `TypedDict`.

    Attributes:
        volatile: fields that change by themselves, or with the user who asks: their changes do not count. Patterns of
            dotted names without places in lists, such as `*_url`; a star stands for any text, dots too.
        list_keys: dotted name of a list (empty: the result itself) -> the field by which its entries are told apart.
            Entries of other lists are told apart by `id`, where each has one, and else by their place.
        untabled: fields that no table holds, because they are large or hold tokens; patterns as in `volatile`.
    """

    volatile: ClassVar[frozenset[str]] = VOLATILE
    list_keys: ClassVar[Mapping[str, str]] = {}
    untabled: ClassVar[frozenset[str]] = frozenset()


class Conflict(msgspec.Struct, frozen=True):
    """Two items of one manifest that can't both be meant.

    Attributes:
        message: message about the later item: what can't be meant, and the way out; `{other}` stands for the earlier.
        may_insist: the later item passes if its job has `allow_overwrites: true`, or needs the job of the earlier one.
    """

    message: str
    may_insist: bool = False


class FileError(ValueError):
    """The content of a file that an item names can't be sent; the message says why."""


class DecidesState(Operation[ItemT]):
    """An operation whose items decide the state of things, such as one file: two of them may contradict each other.

    Attributes:
        keeps_only_last: only the last item of a lane counts, so that the items before it aren't sent.
    """

    keeps_only_last: ClassVar[bool] = False

    def identities(self, item: ItemT) -> tuple[str, ...]:
        """Return the things whose state `item` decides, such as one file. If two items share a thing, `conflict` is
        called.

        They are compared as they are, among the operations of one resource: fold the case if it does not matter.
        """
        raise TypeError(f"{type(self).__name__} decides a state and lacks identities()")

    def conflict(self, earlier: object, later: ItemT) -> Conflict | None:
        """Return why `later` can't be meant to follow `earlier`, an item before it that shares an identity; or None.

        Args:
            earlier: an item of this or another operation of the resource, different from `later`.
        """
        return None


class ComparesState(DecidesState[ItemT]):
    """An operation whose writes must name the present value, such as a blob, with which the platform compares them."""

    def steps_after(self, item: ItemT, left: str | None, lag_s: float) -> Steps:
        """Do what `steps` does after an earlier item of this run has just left the value `left` (see the method) under
        the first of `identities`. For `lag_s` more seconds, a read may show an older value.
        """
        return self.steps(item)

    def left(self, item: ItemT, outcome: Outcome) -> str | None:
        """Return the value under the first of `identities` after `item` has ended so, such as a blob; empty: nothing is
        there; None: not known. Only writes that the platform compares with the present value leave one."""
        return None


class ChangesThings(Operation[ItemT]):
    """An operation whose items read things before they change them: a copy may still show what was there before."""

    def things(self, item: ItemT) -> tuple[str, ...]:
        """Return the places of the things that `item` changes, such as `/orgs/acme/hooks/12`; see `urls.place`. Its
        first read is believed if it `shows` what this run has just left there, or once a read can't be older."""
        raise TypeError(f"{type(self).__name__} changes things and lacks things()")

    def narrowed(self, item: ItemT, things: Collection[str]) -> ItemT | None:
        """Return an item that does what `item` does to `things` alone; None: `item` is one change of all its things."""
        return None

    def shows(self, result: Any, body: Any) -> bool:
        """Return whether a first read with this `body` shows what an earlier item that ended with `result` has left."""
        return bool(result == body)


class LooksFirst(Operation[ItemT]):
    """An operation with writes that name what they replace and need no read before; only a look needs the read."""

    def steps_to_look(self, item: ItemT) -> Steps:
        """Do what `steps` does, with reads that show what is there before the first write. An item whose thing is as
        wanted is unchanged, even if the write would be refused for that reason."""
        return self.steps(item)


class LooksBack(Operation[ItemT]):
    """An operation whose `steps` can't tell whether an item that was done is still done: they refuse or repeat it."""

    def steps_to_look_back(self, item: ItemT) -> Steps:
        """Do what `steps` does, to find out whether an item that was done is still done: then it is unchanged. A value
        that can't be read, such as a secret, counts as it was sent."""
        return self.steps(item)


class LooksTwice(Operation[ItemT]):
    """An operation of which a look is to find everything as wanted: only two looks show that something is not."""


class CreatesNames(LooksBack[ItemT]):
    """An operation whose items create things, which may not be visible at once."""

    def new_names(self, item: ItemT) -> tuple[str, ...]:
        """Return the names that `item` creates: the plan tells of two names that look alike."""
        return ()

    def collection(self, item: ItemT) -> str:
        """Return the percent-encoded path, such as `/orgs/acme/hooks`, below which a new thing lies by its number.

        The thing is waited for if it can't be seen at once, and counts as explained. Empty: the thing has no number.
        """
        return ""


class Combinable(Operation[ItemT]):
    """An operation whose items may share requests if they are of one job and follow each other in their lane.

    Attributes:
        most_combined: greatest total size of the items of a combined request (see `size_combined`; count).
    """

    most_combined: ClassVar[int]

    def size_combined(self, item: ItemT) -> int:
        """Return the size of `item` in a combined request (count, 1 or more): all sizes together are at most
        `most_combined`."""
        return 1

    def steps_combined(self, items: Sequence[ItemT]) -> CombinedSteps:
        """Do what `steps` does for several items of one job that follow each other in their lane, with fewer requests.

        Only for writes that may be repeated (`Effect.SET`). A write says in `Request.shared_by` for which items it is
        sent. Return an outcome for each item, or None for an item that has to be tried by itself: its `steps` come
        next. If the platform refuses a request, the `steps` of all items without an outcome come next as well. If the
        answer to a write is lost, each of the items that share it is settled by its own `settle`.
        """
        raise TypeError(f"{type(self).__name__} combines and lacks steps_combined()")


class TakesFiles(Operation[ItemT]):
    """An operation whose items may name files whose content is sent.

    Attributes:
        file_fields: field that names a file -> field that holds the same inline, as `content_file` -> `content`.
    """

    file_fields: ClassVar[Mapping[str, str]]

    def with_file(self, item: ItemT, field: str, data: bytes) -> ItemT:
        """Return `item` with the content of the file that `field` names put in its inline field.

        Raises:
            FileError: `data` is not what this field may hold.
        """
        raise FileError(f"{self.name} takes no file in {field}")

    def sent_bytes(self, item: ItemT) -> int:
        """Return the size of what is sent of the file (bytes), if the check shall tell it; 0: it need not."""
        return 0


class ConvertsFiles(TakesFiles[ItemT]):
    """An operation that converts a file before it is sent, which takes long if the file is large."""

    @classmethod
    def converted(cls, field: str, data: bytes) -> bytes:
        """Return the converted file that `field` names. It depends on nothing else: another process may convert it.

        Raises:
            FileError: `data` is not what this field may hold.
        """
        raise FileError(f"{cls.name} takes no file of {len(data):,} bytes in {field}")

    @classmethod
    def counted(cls, field: str, data: bytes) -> bytes:
        """Return a digest of what counts of the converted file that `field` names (`SkipsUnchanged`)."""
        digest = hashlib.sha256(f"{field}\n".encode())
        digest.update(data)
        return digest.digest()

    def with_converted(self, item: ItemT, field: str, data: bytes) -> ItemT:
        """Return `item` with the converted file that `field` names put in its inline field.

        Raises:
            FileError: the converted file does not fit this item.
        """
        raise TypeError(f"{type(self).__name__} converts files and lacks with_converted()")

    def with_file(self, item: ItemT, field: str, data: bytes) -> ItemT:
        """Return `item` with the file put in, converted first."""
        return self.with_converted(item, field, self.converted(field, data))


class HoldsSecrets(Operation[ItemT]):
    """An operation whose items hold secrets, which are read when an item is sent and never written anywhere.

    Attributes:
        secret_fields: dotted fields that hold a secret; `env:NAME` or `file:PATH` in a manifest, never reported.
    """

    secret_fields: ClassVar[frozenset[str]]


class ProvesAbsence(Operation[ItemT]):
    """A read that can tell a thing that is not there from a thing that the credential may not see."""

    def steps_or_absent(self, item: ItemT) -> Steps:
        """Do what `steps` does, but end with `model.missing` if the thing is proven not to be there: a 404 alone proves
        nothing, and the container of the thing has to have been listed."""
        raise TypeError(f"{type(self).__name__} proves absence and lacks steps_or_absent()")

    def place(self, item: ItemT) -> str:
        """Return the path of a thing with a number, whose absence is doubted while the run has just created it."""
        return ""


class PlannedOnce(Operation[ItemT]):
    """An operation that fixes a part of each item before it is first sent, so that a repeat asks for the same."""

    def planned(self, item: ItemT, began_at: float) -> ItemT:
        """Return `item` with that part fixed; here, `item` as it is.

        Args:
            began_at: when the run was begun (UTC epoch seconds, platform time); a resume or a retry gives the same.
        """
        return item


class SkipsUnchanged(Operation[ItemT]):
    """A write that can't be read back, and that need not be repeated if the same was accepted before.

    Attributes:
        skip_unchanged: the setting of its job: `exact`, `content` or `never`; empty: none.
        resend_after_s: content that was sent longer ago than this is sent again (seconds).
    """

    skip_unchanged: ClassVar[str] = ""
    resend_after_s: ClassVar[float] = 30 * 86_400.0

    def sent_digest(self, item: ItemT, counted: bytes = b"") -> bytes:
        """Return a digest of what counts of `item`; empty: the item is always sent.

        Args:
            counted: result of `ConvertsFiles.counted` for the file that the item names; empty: its files are inline.
        """
        raise TypeError(f"{type(self).__name__} skips what is unchanged and lacks sent_digest()")


class SavesContent(Operation[ItemT]):
    """An operation for which `save` writes something other than the result as JSON; `is_saving`: its job has `save`."""

    is_saving: ClassVar[bool] = False

    def saved_bytes(self, outcome: Outcome) -> bytes | None:
        """Return the bytes that `save` writes; None: the result as JSON. A BodyFile is moved to its place instead."""
        raise TypeError(f"{type(self).__name__} saves content and lacks saved_bytes()")


def file_fields(operation: AnyOperation) -> Mapping[str, str]:
    """See `TakesFiles`; empty for other operations."""
    return operation.file_fields if isinstance(operation, TakesFiles) else {}


def secret_fields(operation: AnyOperation) -> frozenset[str]:
    """See `HoldsSecrets`; empty for other operations."""
    return operation.secret_fields if isinstance(operation, HoldsSecrets) else frozenset()


def keeps_only_last(operation: AnyOperation) -> bool:
    """See `DecidesState`."""
    return isinstance(operation, DecidesState) and operation.keeps_only_last


def result_type(operation: AnyOperation) -> Any:
    """Return the type of the results of an operation (see `Returns`); None: it declares none."""
    for kind in type(operation).__mro__:
        for base in kind.__dict__.get("__orig_bases__", ()):
            if get_origin(base) is Returns:
                return get_args(base)[0]
    return None


def allowing_absence(operation: ProvesAbsence[Any]) -> AnyOperation:
    """Return `operation` as a job with `missing: ok` runs it: a thing that is proven not to be there is no failure."""
    return varied(operation, steps=type(operation).steps_or_absent, result_is_reply=False)  # it may have two replies


def skipping_unchanged(operation: SkipsUnchanged[Any], how: str, resend_after_s: float) -> AnyOperation:
    """Return `operation` as a job with `skip_unchanged` or `resend_after` runs it."""
    return varied(operation, skip_unchanged=how, resend_after_s=resend_after_s)


@functools.cache
def varied(operation: AnyOperation, **members: Any) -> AnyOperation:
    """Return `operation` with other members, as a job runs it."""
    kind = type(operation)
    found: AnyOperation = type(kind.__name__, (kind,), {**members, "__module__": kind.__module__})()
    return found
