"""The data types that all stages share: frozen data, no behaviour beyond reading itself, no clock, no I/O.

Request and Reply are one HTTP exchange, Outcome is how an item ended. Classes with an object for every request have an
`__init__` of their own: compiled, making one takes less than half the time of a Struct, and reading an attribute hardly
any (benchmarks/notes/changes.md). Interpreted, positional arguments take half as long as keywords.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import msgspec
import orjson

from bulk.proof import Proof

JSON_BODY_BYTES = 32 * 1024 * 1024
"""Most bytes of a JSON answer after decompression; more is a `bad_response` (failures.md row 29)."""

RAW_BODY_BYTES = 100 * 1024 * 1024
"""Most bytes of a file's content: the platform's own limit for contents (specification, Limits)."""

UNSEEN: Final = msgspec.UNSET
"""The before-image of a write whose operation did not look; None says that nothing was there."""


class Effect(StrEnum):
    """What a request does to the platform: decides what happens when its answer is lost (operations.md, Policies)."""

    READ = "read"  # S: repeated freely
    SET = "set"  # I: set semantics, repeated within its lane
    COMPARE_AND_SWAP = "compare-and-swap"  # C: the platform refuses a second application
    CREATE_UNIQUE = "create-unique"  # K: a unique key lets at most one be made
    CREATE = "create"  # U: no proven uniqueness: read back after the settle time before any repeat
    ORDERED = "ordered"  # O: as SET while nothing later of its lane was sent
    MOVE = "move"  # a rename: never repeated without proof that it did not happen

    @property
    def may_repeat_at_once(self) -> bool:
        """Whether one negative read-back is enough to send the write again, because a double can't apply twice."""
        return self not in (Effect.CREATE, Effect.MOVE)


class Media(StrEnum):
    """The representation that a request asks for; it becomes the vendor's media type in `Accept`."""

    JSON = "json"
    RAW = "raw"
    HTML = "html"
    OBJECT = "object"


@dataclass(init=False, slots=True, unsafe_hash=True)
class Request:
    """One HTTP request of an operation, before credentials and headers.

    Attributes:
        path: percent-encoded, from the base URL on, begins with `/`; `urls.py` builds it.
        query: percent-encoded, without the question mark.
        body: a JSON value to send; None sends no body.
        accept: statuses that the operation wants to see as a Reply. Others are judged by the engine:
            refusals end the item, limits are waited for, lost answers are settled.
        is_fresh: never answered from the store and sent without conditions, as read-backs must be.
        before: before-image of a write, a JSON value: what the steps saw there; None: nothing was there; UNSEEN: they
            did not look. It is kept with the intent; settling, the live plan, undo and `verify` read it. For a
            combined write: a list with the before-images of the items in `shared_by`. Never a secret.
        max_bytes: most bytes of the answer's body after decompression.
        takes_file: `Reply.body` may be a BodyFile, if a success that is asked for as raw or html is very long.
        pause_s: seconds that the engine waits before it sends this, 0.0 for none; reads only, to follow work that takes
            time.
        is_poll: a read of a list that is made for polling: one at a time for each credential and path, and not before
            the `X-Poll-Interval` of the last one is over. Further pages of one listing are not polls.
        shared_by: of a combined write: the places of the items that it is sent for (`Operation.steps_combined`).
        dates_hold: the thing that is read changes whenever its `Last-Modified` changes, and only then.
        proof: what an answer of success must show to be believed; None: its status is all that there is (204, 205).
    """

    method: Final[str]
    path: Final[str]
    query: Final[str]
    body: Final[Any]
    effect: Final[Effect]
    accept: Final[frozenset[int]]
    media: Final[Media]
    is_fresh: Final[bool]
    before: Final[Any]
    max_bytes: Final[int]
    takes_file: Final[bool]
    pause_s: Final[float]
    is_poll: Final[bool]
    shared_by: Final[tuple[int, ...]]
    dates_hold: Final[bool]
    proof: Final[Proof | None]

    def __init__(
        self,
        *,
        method: str,
        path: str,
        query: str = "",
        body: Any = None,
        effect: Effect = Effect.READ,
        accept: frozenset[int] = frozenset((200,)),
        media: Media = Media.JSON,
        is_fresh: bool = False,
        before: Any = UNSEEN,
        max_bytes: int = JSON_BODY_BYTES,
        takes_file: bool = False,
        pause_s: float = 0.0,
        is_poll: bool = False,
        shared_by: tuple[int, ...] = (),
        dates_hold: bool = False,
        proof: Proof | None = None,
    ) -> None:
        self.dates_hold = dates_hold
        self.method, self.path, self.query, self.body = method, path, query, body
        self.effect, self.accept, self.media, self.is_fresh = effect, accept, media, is_fresh
        self.before, self.max_bytes, self.takes_file, self.pause_s = before, max_bytes, takes_file, pause_s
        self.is_poll, self.shared_by, self.proof = is_poll, shared_by, proof

    @property
    def own_before(self) -> Any:
        """What was there before a write that one item alone sends, also where it could have been combined."""
        return self.before[0] if self.shared_by and self.before is not UNSEEN else self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyFile:
    """A body that is too long for memory, in a private file that is there until its item has ended.

    As an outcome's payload it is what `save` writes: the file is moved to its place.

    Attributes:
        name: path of the file, relative to the run directory.
        size_bytes: size of the content, without content coding (bytes).
        sha256: SHA-256 of the content, in hexadecimal. blob_sha: git's blob name of it (40 hexadecimal digits).
    """

    name: str
    size_bytes: int
    sha256: str
    blob_sha: str


@dataclass(init=False, slots=True, unsafe_hash=True)
class Reply:
    """The platform's answer to one request.

    Attributes:
        status: the HTTP status; 200 when a 304 was answered from the store (`is_unchanged` tells).
        headers: names in lower case.
        body: the decoded JSON value; bytes for raw and html, or a BodyFile where the request takes one; None where
            there is none.
        is_unchanged: the platform said 304 and the body comes from the store. The body is an Encoded if the item ends
            with it as it is; no operation sees such a body.
        is_truncated: the status was seen, the body broke on the way; `body` is None.
        request_id: the platform's own id of the request.
        raw: the body, decompressed, for the store of validators; empty where it was not read to its end.
    """

    status: Final[int]
    headers: Final[Mapping[str, str]]
    body: Final[Any]
    is_unchanged: Final[bool]
    is_truncated: Final[bool]
    request_id: Final[str | None]
    raw: Final[bytes]

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        body: Any = None,
        is_unchanged: bool = False,
        is_truncated: bool = False,
        request_id: str | None = None,
        raw: bytes = b"",
    ) -> None:
        self.status, self.headers, self.body, self.is_unchanged = status, headers, body, is_unchanged
        self.is_truncated, self.request_id, self.raw = is_truncated, request_id, raw


class Encoded:
    """A JSON value as the text that stands in results, on one line, so that it is written again without decoding.

    Attributes:
        text: the JSON text in UTF-8.
        is_clean: secrets were taken out of the text when it was kept, so that it need not be searched again.
    """

    __slots__ = ("is_clean", "text")

    def __init__(self, text: bytes, is_clean: bool = False) -> None:
        self.text: Final[bytes] = text
        self.is_clean: Final[bool] = is_clean

    @classmethod
    def of(cls, value: Any) -> "Encoded | None":
        """Return `value` as an Encoded; None if it is nested too deeply to be written as it is."""
        try:
            # in a list, because it is nested in a line of results as well
            return cls(orjson.dumps([value])[1:-1])
        except TypeError:
            return None

    def decoded(self) -> Any:
        """Return the value."""
        return orjson.loads(self.text)


class FailureKind(StrEnum):
    """What is known about a request without a usable answer."""

    NOT_SENT = "not-sent"  # no byte left: repeat freely, no budget was used
    LOST = "lost"  # something left and no status came back: it may have happened


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A request that got no answer: a value, because the engine decides what follows from it.

    Attributes:
        code: `connection`, `timeout` or `bad_response`.
        message: for people; holds no secret.
        is_certificate: TLS refused the platform's certificate: no repeat will help (failures.md row 3).
        is_answer: HTTP was answered, only not in a way that can be used: the platform is in reach.
    """

    kind: FailureKind
    code: "ErrorCode"
    message: str
    is_certificate: bool = False
    is_answer: bool = False


class ErrorCode(StrEnum):
    """Stable codes of `error.code` in results (interface.md §5)."""

    INVALID_ITEM = "invalid_item"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    VALIDATION_FAILED = "validation_failed"
    RATE_LIMITED = "rate_limited"
    TOO_LARGE = "too_large"
    REJECTED = "rejected"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    BAD_RESPONSE = "bad_response"
    UNKNOWN_OUTCOME = "unknown_outcome"
    DEPENDENCY_FAILED = "dependency_failed"
    SUPERSEDED = "superseded"
    STALE = "stale"


class OutcomeKind(StrEnum):
    """How an item ended (interface.md §1)."""

    SUCCEEDED = "succeeded"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ItemError:
    """Why an item did not succeed. `attempts` counts the sends of the request that decided the outcome."""

    code: ErrorCode
    message: str
    http_status: int | None = None
    attempts: int = 0


@dataclass(init=False, slots=True, unsafe_hash=True)
class Outcome:
    """How an item ended, as its operation tells it.

    Attributes:
        result: a JSON value for `results.jsonl`, or an Encoded.
        payload: content that `save` writes, if it is not in `result` (raw and html).
        http_status: status of the answer that decided; the engine fills it in if the operation did not.
        gives_codes: codes say why the request was refused: the same request before can't have been accepted either.
        is_missing: the thing that was asked for is proven not to be there, and the job allows that; no result.
    """

    kind: Final[OutcomeKind]
    result: Final[Any]
    error: Final[ItemError | None]
    payload: Final[bytes | BodyFile | None]
    http_status: Final[int | None]
    gives_codes: Final[bool]
    is_missing: Final[bool]

    def __init__(
        self,
        kind: OutcomeKind,
        result: Any = None,
        error: ItemError | None = None,
        payload: bytes | BodyFile | None = None,
        http_status: int | None = None,
        gives_codes: bool = False,
        is_missing: bool = False,
    ) -> None:
        self.kind, self.result, self.error, self.payload = kind, result, error, payload
        self.http_status, self.gives_codes, self.is_missing = http_status, gives_codes, is_missing


_SUCCEEDED, _UNCHANGED = OutcomeKind.SUCCEEDED, OutcomeKind.UNCHANGED
SUCCESSFUL = frozenset((_SUCCEEDED, _UNCHANGED))
"""Outcomes of items that are as they were asked for."""


def succeeded(result: Any, *, note: str | None = None, payload: bytes | BodyFile | None = None) -> Outcome:
    """Return the outcome of an item whose effect is there. A `note` says what was inferred or could not be verified; it
    becomes `result.note`."""
    return Outcome(_SUCCEEDED, result if note is None else _noted(result, note), None, payload)


def unchanged(result: Any, *, note: str | None = None, payload: bytes | BodyFile | None = None) -> Outcome:
    """Return the outcome of an item for which nothing had to be sent or done."""
    return Outcome(_UNCHANGED, result if note is None else _noted(result, note), None, payload)


def missing(*, is_unchanged: bool) -> Outcome:
    """Return the outcome of an item whose thing is proven not to be there, in a job with `missing: ok`.

    Args:
        is_unchanged: nothing has changed since the answers that prove it were kept.
    """
    return Outcome(kind=_UNCHANGED if is_unchanged else _SUCCEEDED, is_missing=True)


def failed(
    code: ErrorCode, message: str, *, http_status: int | None = None, result: Any = None, gives_codes: bool = False
) -> Outcome:
    """Return the outcome of an item that certainly is not as asked for."""
    error = ItemError(code, message, http_status)
    return Outcome(OutcomeKind.FAILED, result, error, None, http_status, gives_codes)


def skipped(code: ErrorCode, message: str) -> Outcome:
    """Return the outcome of an item that was not tried."""
    return Outcome(kind=OutcomeKind.SKIPPED, error=ItemError(code, message))


def unknown(message: str, *, http_status: int | None = None, result: Any = None) -> Outcome:
    """Return the outcome of a lost answer that no read-back can settle; `result`: what was asked for and found."""
    error = ItemError(ErrorCode.UNKNOWN_OUTCOME, message, http_status)
    return Outcome(kind=OutcomeKind.UNKNOWN, result=result, error=error, http_status=http_status)


def _noted(result: Any, note: str) -> Any:
    if result is None:
        return {"note": note}
    return {**result, "note": note} if isinstance(result, dict) else {"value": result, "note": note}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A write whose answer was lost, as its intent in the ledger remembers it, also after a crash.

    Attributes:
        before: `Request.before` of the lost request, of this item alone.
        sent_at: when it was first sent (UTC epoch seconds, this machine's time; not the platform's).
        status: the HTTP status that came back and proves nothing; None: none came back.
        made: names, folded, and places (`urls.place`) of things that this run is known to have made itself shortly
            before: these are new and explained.
    """

    method: str
    path: str
    sent_at: float
    before: Any = UNSEEN
    status: int | None = None
    made: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NotApplied:
    """A read-back found no trace of the lost write, which the engine may trust. `part`: the result to show where a part
    of what was asked for is there, and was not before; None: nothing is."""

    why: str = ""
    part: Any = None


@dataclass(frozen=True, slots=True)
class Undecided:
    """A read-back can't tell. `found`: what stood there instead, as JSON for the result; None: nothing to show.
    `is_begun`: even a refused write may have begun. `is_unseen`: what was read before can't be read any more."""

    why: str
    found: Any = None
    is_begun: bool = False
    is_unseen: bool = False
