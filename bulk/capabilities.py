"""What some operations need besides `Operation`: mixins, each with the members that belong together.

An operation inherits from those that it needs, `class CreateWebhook(CreatesNames[CreateWebhookItem], …)`; the engine
asks with `isinstance`.
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
"""What is no change of a thing, unless its operation says otherwise: addresses, and the platform's own keys."""


class Returns(Generic[ResultT]):
    """Says of which type `result` is where an item succeeded or was unchanged, as in `Returns[Webhook]`.

    Type checkers read it: `Engine.map(CreateWebhook, …)` gives results of that type. So do tables of results, whose
    columns are the fields of the type. A result is decoded JSON, so that the type of an object is a `TypedDict`.

    Attributes:
        volatile: fields that change by themselves, or with who asks: they are no change of the thing. Patterns of
            dotted names without places in lists, as `*_url`; a star stands for any text, dots too.
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
        message: said of the later item: what can't be meant, and the way out; `{other}` stands for the earlier one.
        may_insist: `allow_overwrites: true` on the later item's job lets it pass, or that it needs the other's.
    """

    message: str
    may_insist: bool = False


class FileError(ValueError):
    """What a `content_file` (or the like) holds can't be sent; the message says why."""


class DecidesState(Operation[ItemT]):
    """Its items decide the state of things, such as one file: two of them in a manifest may contradict each other.

    Attributes:
        keeps_only_last: of the items of a lane the last one alone counts, so that the ones before it aren't sent.
    """

    keeps_only_last: ClassVar[bool] = False

    def identities(self, item: ItemT) -> tuple[str, ...]:
        """Return the things whose state `item` decides, such as one file: where two items share one, `conflict` is
        asked.

        They are compared as they are, among the operations of one resource: fold the case where it does not matter.
        """
        raise TypeError(f"{type(self).__name__} decides a state and lacks identities()")

    def conflict(self, earlier: object, later: ItemT) -> Conflict | None:
        """Return why `later` can't be meant to follow `earlier`, the item before it that shares an identity with it.

        Args:
            earlier: an item of this or another operation of the resource, different from `later`.
        """
        return None


class ComparesState(DecidesState[ItemT]):
    """The platform compares its writes with what is there, as by a blob, so that one that follows another knows it."""

    def steps_after(self, item: ItemT, left: str | None, lag_s: float) -> Steps:
        """Do what `steps` does where an earlier item of this run has just left that under the first of `identities` (as
        `left` tells it): for `lag_s` more seconds what a read shows may be older.
        """
        return self.steps(item)

    def left(self, item: ItemT, outcome: Outcome) -> str | None:
        """Return what stands under the first of `identities` now that `item` has ended so, such as a blob; empty:
        nothing; None: that can't be told. Only writes that the platform compares with what is there have an answer."""
        return None


class ChangesThings(Operation[ItemT]):
    """Its items look at what is there before they change it: a copy of the platform may still show it as it was before
    an earlier item."""

    def things(self, item: ItemT) -> tuple[str, ...]:
        """Return where lies what `item` changes, as `/orgs/acme/hooks/12`; see `urls.place`.

        What the first read of an item shows of them is believed where it `shows` what this run has just left there, or
        when a read can't be older.
        """
        raise TypeError(f"{type(self).__name__} changes things and lacks things()")

    def narrowed(self, item: ItemT, things: Collection[str]) -> ItemT | None:
        """Return what `item` does to those of its `things` alone; None: it is one change of all."""
        return None

    def shows(self, result: Any, body: Any) -> bool:
        """Return whether a first read with that body shows what an item that ended with `result` has left."""
        return bool(result == body)


class LooksFirst(Operation[ItemT]):
    """Some of its writes name what they replace, so that they need no read before; who only looks does need it."""

    def steps_to_look(self, item: ItemT) -> Steps:
        """Do what `steps` does, with reads that show what is there before the first write. What is as the item wants
        it is unchanged, also where the write would be refused because it is."""
        return self.steps(item)


class LooksBack(Operation[ItemT]):
    """Its steps do not say by themselves whether an item that was done still is: they refuse what they have made, or
    write again what they can't read or don't compare."""

    def steps_to_look_back(self, item: ItemT) -> Steps:
        """Do what `steps` does, to look whether an item that was done still is: then it is unchanged.

        What can't be read, such as a secret, counts as it was sent.
        """
        return self.steps(item)


class CreatesNames(LooksBack[ItemT]):
    """Its items bring things into the world, which may not be seen at once."""

    def new_names(self, item: ItemT) -> tuple[str, ...]:
        """Return names that `item` brings into the world: the plan tells of two that look alike."""
        return ()

    def collection(self, item: ItemT) -> str:
        """Return the path below which what `item` creates lies by its number, as `/orgs/acme/hooks`; percent-encoded.

        What lies there is waited for if it can't be seen at once, and counts as explained. Empty: nothing has a number.
        """
        return ""


class Combinable(Operation[ItemT]):
    """Items of one job that stand one behind the other in their lane may share their requests.

    Attributes:
        most_combined: most that a combined request holds (see `size_combined`; count).
    """

    most_combined: ClassVar[int]

    def size_combined(self, item: ItemT) -> int:
        """Return what `item` takes of a combined request (count, 1 or more); at most `most_combined` go together."""
        return 1

    def steps_combined(self, items: Sequence[ItemT]) -> CombinedSteps:
        """Do what `steps` does for items of one job that stand one behind the other in their lane: fewer requests for
        all.

        It is only for writes that may be repeated (`Effect.SET`). A write says in `Request.shared_by` for which items
        it is sent. Returns an outcome for each item, or None for those that have to be tried by themselves: their
        `steps` come next. The same follows for all without an outcome where the platform refuses a request; where the
        answer to a write is lost, each of the items that share it is settled by its own `settle`.
        """
        raise TypeError(f"{type(self).__name__} combines and lacks steps_combined()")


class TakesFiles(Operation[ItemT]):
    """Its items may name files whose content is sent.

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
        """Return how large what is sent of the file is (bytes), where the check shall tell it; 0: it need not."""
        return 0


class ConvertsFiles(TakesFiles[ItemT]):
    """What it sends of a file is made from it, and that takes long where the file is large."""

    @classmethod
    def converted(cls, field: str, data: bytes) -> bytes:
        """Return what is made of the file that `field` names. It depends on nothing else: another process may do it.

        Raises:
            FileError: `data` is not what this field may hold.
        """
        raise FileError(f"{cls.name} takes no file of {len(data):,} bytes in {field}")

    @classmethod
    def counted(cls, field: str, data: bytes) -> bytes:
        """Return a digest of what counts of what was made of the file that `field` names (`SkipsUnchanged`)."""
        digest = hashlib.sha256(f"{field}\n".encode())
        digest.update(data)
        return digest.digest()

    def with_converted(self, item: ItemT, field: str, data: bytes) -> ItemT:
        """Return `item` with what was made of the file that `field` names put in its inline field.

        Raises:
            FileError: it does not fit this item.
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
    """A read that can tell that something is not there from that the credential may not see it."""

    def steps_or_absent(self, item: ItemT) -> Steps:
        """Do what `steps` does, but end with `model.missing` what is proven not to be there.

        A 404 alone proves nothing: what it lies in has to have been listed.
        """
        raise TypeError(f"{type(self).__name__} proves absence and lacks steps_or_absent()")


class PlannedOnce(Operation[ItemT]):
    """Something about its items is fixed before they are first sent, so that a repeat asks for the same."""

    def planned(self, item: ItemT, began_at: float) -> ItemT:
        """Return `item` with what has to be fixed before it is first sent, so that a repeat asks for the same; item as
        it is.

        Args:
            began_at: when the run was begun (UTC epoch seconds, platform time); a resume or a retry gives the same.
        """
        return item


class FileBefore(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that an undoing item sends, and where they can be read while `bulk undo` writes the manifest.

    Attributes:
        field: of the undoing item that names the file that they are put in.
        operation: the read that gives them as its payload, and the fields of its `item`.
        owner_field: of that item, which names whose they are: an item of the run may have renamed that since.
        blob_sha: what git calls a file that holds them: others are not taken for them (40 hexadecimal digits).
    """

    field: str
    operation: str
    item: dict[str, Any]
    owner_field: str
    blob_sha: str


class Undo(msgspec.Struct, frozen=True, kw_only=True):
    """What takes an item back.

    Attributes:
        operation: name of the one that does so, and the fields of its `item`; its preconditions are among them.
        loses: what does not come back, as `its secret`; empty: nothing.
        file: bytes that belong to the item.
        renamed: the name that something had before, and the one that it has until this is taken back.
        comes_anew: what comes back bears another number: what the run did to it before can't be taken back, too.
    """

    operation: str
    item: dict[str, Any]
    loses: str = ""
    file: FileBefore | None = None
    renamed: tuple[str, str] | None = None
    comes_anew: bool = False


class Irreversible(msgspec.Struct, frozen=True):
    """Why an item can't be taken back. `removes`: what it changed is gone, with all that was done to it."""

    why: str
    removes: bool = False


class Undoable(Operation[ItemT]):
    """Its writes can be taken back: what was there before them is kept in the ledger, for `bulk undo`."""

    def undo(self, item: ItemT, before: Any, result: Any) -> Undo | Irreversible:
        """Return what takes an item back that has succeeded.

        Args:
            item: as the results show it: without its secrets and what is `unreported`.
            before: `Request.before` of its write, or UNSEEN.
            result: of its outcome: what it left is the precondition, so that nobody's later change is overwritten.
        """
        raise TypeError(f"{type(self).__name__} can be undone and lacks undo()")


class SkipsUnchanged(Operation[ItemT]):
    """A write that nothing can read back, and that need not be repeated where the same was taken before.

    Attributes:
        skip_unchanged: what its job says: `exact`, `content` or `never`; empty: nothing.
        resend_after_s: what was sent longer ago is sent again (seconds).
    """

    skip_unchanged: ClassVar[str] = ""
    resend_after_s: ClassVar[float] = 30 * 86_400.0

    def sent_digest(self, item: ItemT, counted: bytes = b"") -> bytes:
        """Return a digest of what counts of `item`; empty: it is always sent.

        Args:
            counted: what `ConvertsFiles.counted` says of the file that it names; empty: its files are inline.
        """
        raise TypeError(f"{type(self).__name__} skips what is unchanged and lacks sent_digest()")


class SavesContent(Operation[ItemT]):
    """`save` writes something else than the result as JSON."""

    def saved_bytes(self, outcome: Outcome) -> bytes | None:
        """Return what `save` writes; None: the result as JSON. It is not asked for a BodyFile, which is moved to its
        place."""
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
    """Return of which type its results are (see `Returns`); None where it says nothing."""
    for kind in type(operation).__mro__:
        for base in kind.__dict__.get("__orig_bases__", ()):
            if get_origin(base) is Returns:
                return get_args(base)[0]
    return None


@functools.cache
def allowing_absence(operation: ProvesAbsence[Any]) -> AnyOperation:
    """Return `operation` as a job with `missing: ok` runs it: what is proven not to be there is no failure."""
    kind = type(operation)
    # its only reply may be another one than that of the same operation elsewhere
    members = {"steps": kind.steps_or_absent, "result_is_reply": False, "__module__": kind.__module__}
    found: AnyOperation = type(kind.__name__, (kind,), members)()
    return found


@functools.cache
def skipping_unchanged(operation: SkipsUnchanged[Any], how: str, resend_after_s: float) -> AnyOperation:
    """Return `operation` as a job runs it that says `skip_unchanged` or `resend_after`."""
    kind = type(operation)
    members = {"skip_unchanged": how, "resend_after_s": resend_after_s, "__module__": kind.__module__}
    found: AnyOperation = type(kind.__name__, (kind,), members)()
    return found
