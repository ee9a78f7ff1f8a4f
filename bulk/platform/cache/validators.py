"""Validators and bodies of earlier reads, so that unchanged answers cost nothing; one file for each credential.

`find` is called from the event loop, `keep` buffers, `flush` writes from a thread. It is only a saving: a store that is
locked, damaged or can't be written is left alone with one warning, and all reads go on as without a store. Two
processes may share a file (SQLite). Its name is a keyed hash, so that another token, platform, vendor or version never
sees these bodies. Source: open-points.md (304); failures.md rows 13, 37, 64.
"""

import hashlib
import hmac
import logging
import os
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from bulk.clock import Clock
from bulk.manifest.manifest import Platform
from bulk.model import Effect, Encoded, Outcome, OutcomeKind, Reply, Request
from bulk.platform.auth.secrets import Secret
from bulk.platform.bodies.body_values import Unreadable, read_body
from bulk.platform.cache.cache_entry import (
    BY_DATE,
    BY_PREDICTION,
    BothHeaders,
    CacheEntry,
    as_result,
    head_of,
    is_dated,
    is_whole,
    sealed,
    without_secrets,
)
from bulk.platform.cache.cache_table import SCHEMA, VERSION, CacheTable, Row, drop_unused, hash_of, write_answers
from bulk.platform.cache.predictions import Predictions
from bulk.platform.cache.store_files import make_private, name_of_identity, name_of_token
from bulk.urls import tells_of_pages

BODY_BYTES = 8 * 1024 * 1024
"""Longer bodies are not kept (bytes)."""

KEPT_STATUS = 200
"""Status of every answer that is kept."""

BUFFER_BYTES = 16 * 1024 * 1024
"""Most bytes of bodies that wait for `flush` or are being written by it; no more answers are taken in above that."""

TAGS_IN_MEMORY = 1_000
"""Tokens whose tags are known (count)."""

UNUSED_S = 90 * 86_400.0
"""Answers that nothing asked for in this long are dropped when the store is opened."""

TOUCH_S = 86_400.0
"""The time of the last use of an answer is exact to this (seconds)."""

LOCKED_S = 5.0
"""How long `flush` waits for another process (seconds)."""

GROUP_ROWS, GROUP_BYTES, GROUP_S = 1_000, 4 * 1024 * 1024, 1.0
"""`flush_some` waits for this many answers, or bytes of bodies, and at most this long (seconds). The places of answers
lie all over a table, so that the same pages of it are written again for each group."""

PAGE_BYTES = 16_384
"""Page size of a new file (bytes): several answers fit into a page."""

READER_CACHE_KIB = 2_000
"""Cache of pages for looking up (KiB); the system caches the rest of the file."""

LOG_ROWS = 5_000
"""After this many answers the write-ahead log is emptied into the file (count)."""

LOG_TRIES = 20
"""How often that is tried, while another process is reading (count)."""

_READ, _SUCCEEDED = Effect.READ, OutcomeKind.SUCCEEDED
_NOTHING_HASHED = hashlib.blake2b(digest_size=16)  # copying a hash object costs less than making one
_IS_LOCKED = retry_if_exception(lambda error: getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"))

_LOG = logging.getLogger(__name__)


class ValidatorStore:
    """The answers kept for one credential at one platform.

    Args:
        directory: made if missing, closed to others; a directory that others may write into is not used.
        identity: identity whose tokens, whichever they are, get these answers; empty: they are one token's alone.

    Attributes:
        is_open: whether the store works; once it does not, it never does again.
    """

    def __init__(
        self,
        directory: Path,
        platform: Platform,
        secret: Secret,
        *,
        clock: Clock | None = None,
        identity: str = "",
    ) -> None:
        self._clock = clock or Clock()
        self._identity, self._platform = identity, platform
        self._path = directory / (f"{name_of_token(platform, secret)}.db" if not identity else "unknown.db")
        self._tags: dict[Secret, str] = {}
        self._key = b""
        self._predictions = Predictions() if platform.vendor == "github" else None
        self._pending: dict[bytes, Row] = {}  # with the hash of the key where the file has a number
        self._pending_bytes = self._leaving_bytes = 0
        self._touched: dict[bytes, int] = {}
        self._logged = self._tries = self._data_version = 0
        self._flushed_at = self._clock.monotonic()
        self._dropped: set[bytes] = set()
        self._buffers = threading.Lock()  # for what waits for `flush`
        self._writing = threading.Lock()  # for the writing connection
        self._kept: CacheTable | None = None
        self._writer: sqlite3.Connection | None = None
        self.is_open = True
        try:
            self._open(directory)
        except (OSError, sqlite3.Error, ValueError) as error:  # the last: of a damaged file
            self._give_up("can't be used", error)

    def key_of(self, request: Request, within: str = "") -> bytes | None:
        """Return the key of the answer to `request`; None if it is neither kept nor looked for.

        Args:
            within: owner of the answer, of several that share the store.
        """
        return _key(request, within) if self.is_open and _may_be_kept(request) else None

    def usable(self, request: Request, key: bytes, token: Secret) -> CacheEntry | None:
        """Return the kept answer to `request`, with the way to ask with `token` whether it has changed; None: none.

        A token that did not get the answer can't use its ETag; see `cache_entry.BY_ETAG`."""
        entry = self.find(request, key)
        if entry is None or not entry.tag or not self._identity or entry.tag == self._tag_of(token):
            return entry
        if self._predictions is not None and entry.is_raw and self._predictions.is_worth(request):
            entry.way = BY_PREDICTION
            return entry
        if request.dates_hold and entry.is_dated and not self._platform.is_exact:
            entry.way = BY_DATE
            return entry
        return None

    def told(self, request: Request, entry: CacheEntry, headers: Mapping[str, str], *, is_unchanged: bool) -> None:
        """Note whether the platform said that a kept answer has not changed."""
        if entry.way == BY_PREDICTION and self._predictions is not None:
            self._predictions.note(request, headers, is_hit=is_unchanged)

    def _tag_of(self, token: Secret) -> str:
        """Return a tag that tells a token from others and says nothing about it."""
        tag = self._tags.get(token)
        if tag is None:
            if len(self._tags) >= TAGS_IN_MEMORY:
                self._tags.clear()
            tag = hmac.new(self._key, token.reveal().encode(), hashlib.sha256).hexdigest()[:16]
            self._tags[token] = tag
        return tag

    def find(self, request: Request, key: bytes | None = None) -> CacheEntry | None:
        """Return the kept answer to `request`; None where there is none, or where the request must be fresh. Never
        raises.

        Args:
            key: result of `key_of`, if it is known already.
        """
        key = key or self.key_of(request)
        if key is None or self._kept is None or not self.is_open:
            return None
        waiting = self._pending.get(key)
        if waiting is not None:
            return CacheEntry(waiting, request.media, is_clean=False)
        if key in self._dropped:
            return None
        try:
            row = self._kept.find(key)
        except sqlite3.Error as error:
            self._give_up("is given up", error)
            return None
        if row is None or not is_whole(row):
            return None
        now = int(self._clock.now())
        if now - row[4] > TOUCH_S:
            with self._buffers:
                self._touched[key] = now
        return CacheEntry(row, request.media)

    def reply_from(self, stored: CacheEntry, reply_304: Reply, operation: str = "") -> Reply:
        """Return the kept answer with the headers of the 304 that confirmed it, or the 304 if it means another version.

        In that case, or if the kept body can't be read any more, the kept answer is forgotten, so that repeating the
        request brings a new one.

        Args:
            operation: items of it may end with the body as it was kept, as an `Encoded`; empty: the body is decoded."""
        if not stored.is_confirmed_by(reply_304.headers):
            self._forget(stored.key)
            return reply_304
        kept: dict[str, str] = {}
        if stored.content_type:  # a 304 has no content, whatever type a gateway may give it
            kept["content-type"] = stored.content_type
        if stored.link and not tells_of_pages(reply_304.headers):
            kept["link"] = stored.link
        headers = BothHeaders(kept, reply_304.headers)
        body: Any = Encoded(stored.body, stored.is_clean) if stored.is_result_of(operation) else None
        if body is None:
            body = read_body(stored.media, KEPT_STATUS, kept, stored.body)
        if isinstance(body, Unreadable):
            self._forget(stored.key)
        return Reply(status=KEPT_STATUS, headers=headers, body=body, is_unchanged=True, request_id=reply_304.request_id)

    def _forget(self, key: bytes) -> None:
        self._pending.pop(key, None)
        self._dropped.add(key)

    def keep(self, request: Request, reply: Reply, key: bytes | None = None, token: Secret | None = None) -> bool:
        """Keep `reply` if it is a 200 to a read, with a validator, complete, usable and not too long; return whether.

        Args:
            key: result of `key_of`, if it is known already. token: the token that got the answer.
        """
        key = key or self.key_of(request)
        if key is None or not self.is_open:
            return False
        is_whole = not reply.is_truncated and not isinstance(reply.body, Unreadable)
        if reply.status != KEPT_STATUS or reply.is_unchanged or not is_whole:
            return False
        headers, raw = reply.headers, reply.raw
        etag, last_modified = headers.get("etag", ""), headers.get("last-modified", "")
        if not etag and not last_modified:
            return False
        if len(raw) > BODY_BYTES or self._pending_bytes + self._leaving_bytes + len(raw) > BUFFER_BYTES:
            return False
        if "no-store" in headers.get("cache-control", "").lower():
            return False
        tag = self._tag_of(token) if self._identity and token is not None else ""
        is_late = tag != "" and request.dates_hold and is_dated(headers)
        content_type, link = headers.get("content-type", ""), headers.get("link", "")
        head = head_of(etag, last_modified, content_type, link, tag, is_dated=is_late)
        if head is None:
            return False
        if self._kept is not None:
            self._kept.note(key)
        now = int(self._clock.now())
        with self._buffers:
            self._pending[key] = hash_of(key), key, head, raw, now
            self._pending_bytes += len(raw)
        self._dropped.discard(key)
        return True

    def note_result(self, key: bytes, operation: str, reply: Reply, outcome: Outcome) -> Outcome:
        """Return the outcome of an item of `operation` after `reply`, its only reply, which was just kept under `key`.

        If the result is the body as it came, both the store and the outcome get it in the form that will be written.
        """
        if outcome.result is not reply.body or outcome.kind is not _SUCCEEDED or outcome.payload is not None:
            return outcome
        result = Encoded.of(reply.body)
        if result is None:
            return outcome
        text = result.text
        with self._buffers:
            row = self._pending.get(key)
            if row is not None:  # otherwise the answer is on its way to disk as it came
                self._pending[key] = row[0], key, as_result(row[2], operation, text, row[3]), text, row[4]
                self._pending_bytes += len(text) - len(row[3])
        return Outcome(kind=outcome.kind, result=result, http_status=outcome.http_status)

    def flush_some(self) -> None:
        """Flush if enough answers have come together or the last flush is long enough ago."""
        is_enough = len(self._pending) >= GROUP_ROWS or self._pending_bytes >= GROUP_BYTES
        if is_enough or self._clock.monotonic() - self._flushed_at >= GROUP_S:
            self.flush()

    def flush(self) -> None:
        """Write the answers kept since the last flush, in one transaction. Called from a thread; never raises."""
        with self._writing:
            if self._writer is None or not self.is_open:
                return
            self._flushed_at = self._clock.monotonic()
            with self._buffers:
                pending, touched = self._pending, self._touched
                self._leaving_bytes = self._pending_bytes
                self._pending, self._touched, self._pending_bytes = {}, {}, 0
            try:
                self._notice_others(self._writer)
                if not pending and not touched:
                    return
                clean = [sealed(row) for row in without_secrets(pending.values())]
                with self._writer:  # ends the transaction, so that another process with the file need not wait for it
                    self._writer.execute("BEGIN IMMEDIATE")
                    write_answers(self._writer, clean, touched)
                if self._kept is not None:
                    self._kept.is_stale = True
                    self._logged += len(pending) + len(touched)
                    if self._logged >= LOG_ROWS:
                        self._empty_log(self._writer, self._kept)
            except sqlite3.Error as error:
                self._give_up("is given up", error)
            finally:
                self._leaving_bytes = 0

    def _notice_others(self, writer: sqlite3.Connection) -> None:
        """Tell the table if another process has written to the file since the last flush."""
        (version,) = writer.execute("PRAGMA data_version").fetchone()
        if version != self._data_version and self._kept is not None:
            self._kept.others_wrote()
        self._data_version = version

    def _empty_log(self, writer: sqlite3.Connection, looking: CacheTable) -> None:
        """Let the write-ahead log begin anew; otherwise it would grow with the items, to ten times the file.

        That can't be while a view of the file is open: the next look-up gives it up, and a later flush empties the log.
        """
        if looking.is_without_view:
            writer.execute("PRAGMA busy_timeout = 0")
            (is_busy, _, _) = writer.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
            writer.execute(f"PRAGMA busy_timeout = {int(LOCKED_S * 1_000)}")
            self._tries += 1
            if is_busy and self._tries < LOG_TRIES:
                return
            self._logged = self._tries = 0
        looking.is_without_view = self._logged > 0

    def close(self) -> None:
        """Write the answers that are left, and close the file."""
        self.flush()
        self.is_open = False
        with self._writing:
            for each in (self._kept, self._writer):
                if each is not None:
                    each.close()
            self._kept = self._writer = None

    def _open(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = directory.stat()
        if about.st_uid != os.geteuid():
            raise PermissionError(0, "the directory belongs to another user")
        if about.st_mode & 0o022:
            raise PermissionError(0, "others may write into the directory")
        if self._identity:
            name, self._key = name_of_identity(directory, self._platform, self._identity)
            self._path = directory / name
        make_private(self._path)
        writer = self._writer = self._connect(LOCKED_S)
        version = writer.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise sqlite3.DatabaseError(f"it has version {version}, from a later version of Bulk")
        writer.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        for attempt in Retrying(retry=_IS_LOCKED, stop=stop_after_delay(LOCKED_S), wait=wait_fixed(0.01), reraise=True):
            with attempt:  # SQLite does not wait here while another process makes or opens the same file
                writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA synchronous = NORMAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")  # `flush` does that
        with writer:  # of several processes that open an older file, one begins it anew
            writer.execute("BEGIN IMMEDIATE")
            if writer.execute("PRAGMA user_version").fetchone()[0] < VERSION:
                for statement in SCHEMA:
                    writer.execute(statement)
            drop_unused(writer, int(self._clock.now() - UNUSED_S))
        reader = self._connect(LOCKED_S)
        self._kept = CacheTable(reader)
        reader.execute("PRAGMA query_only = ON")
        reader.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")
        (self._data_version,) = writer.execute("PRAGMA data_version").fetchone()
        if reader.execute("SELECT 1 FROM answer LIMIT 1").fetchone() is None:
            self._kept.begin_empty()
        reader.execute("PRAGMA busy_timeout = 0")  # from now on the event loop uses the connection

    def _connect(self, locked_s: float) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=locked_s, isolation_level=None, check_same_thread=False)

    def _give_up(self, what: str, error: Exception) -> None:
        """Go on without the store, with one warning. Connections stay until `close`: another thread may use one."""
        if self.is_open:
            self.is_open = False
            reason = error.strerror if isinstance(error, OSError) else str(error)
            advice = f"everything is read anew; {self._path} may be deleted"
            _LOG.warning("the cache of answers %s (%s): %s", what, reason, advice)


def _key(request: Request, within: str = "") -> bytes:
    about = f"{request.method}\0{request.path}\0{request.query}\0{request.media}\0{within}"
    hashed = _NOTHING_HASHED.copy()
    hashed.update(about.encode("utf-8", "surrogatepass"))
    return hashed.digest()


def _may_be_kept(request: Request) -> bool:
    return request.method == "GET" and request.effect is _READ and not request.is_fresh
