"""Budgets and pauses of credentials that several workers share, kept in rows of the store.

The arithmetic is in `govern.budgets.shared_bucket`; a row keeps the state of a shared bucket between two questions.
Each question is one transaction that holds the row's lock, so that the questions of all workers come one after the
other. A budget belongs to a platform and a token, not to a run: two runs with one token share it.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import anyio
import anyio.to_thread
import msgspec
from psycopg import Connection

from bulk.errors import BulkError
from bulk.govern.budgets.buckets import Bucket
from bulk.govern.budgets.shared_bucket import HOLD_S, Lease, SharedBucket, Wish, unlimited
from bulk.govern.first_contact import ASKED_IN
from bulk.govern.governor import Governor
from bulk.govern.peers import SendDeadline
from bulk.govern.permits.accounts import Account, Trust
from bulk.platform.auth.installations import InstallationSource
from bulk.platform.classification import Limits
from bulk.redaction import redact
from bulk.store import sql
from bulk.store.connections import StoreConnection

_SQL = sql.load("budgets")

_log = logging.getLogger(__name__)

POLLER_S = 5.0
"""How long a poller may ask nothing before another worker becomes the poller (seconds)."""

MOST_ACCOUNTS = 1 << 20
"""The most accounts that one worker can have (count)."""

UNKNOWN_PAYER = "unknown"
"""The name of the payer for tokens of which the platform does not say who pays."""

FROZEN_S = 60.0
"""How long other workers believe that a token was refused (seconds)."""

NEAR_S = 0.1
"""A pause that ends at most this much later than a known pause counts as the same one (seconds)."""

T = TypeVar("T")


def account_key(account: Account) -> str:
    """Return the key of an account in the store.

    Workers with different tokens have different keys, and so different budgets. If the source renews its token, the
    key is the account's name alone. An installation of an App has the same key under every name.
    """
    source = account.source
    if isinstance(source, InstallationSource):
        return f"installation {source.installation.id}"
    if source.renews_after_s is not None or source.ends_at is not None:
        return account.name
    return f"{account.name} {_tag(account.token.reveal())}"


def _tag(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12, person=b"bulk account").hexdigest()


class StorePeers:
    """The other workers (`govern.peers.Peers`); `tell` is the task that tells them of accounts.

    Args:
        store: a connection that this object alone uses.
        reserve: returns how many requests to leave to others, for a window of that many requests (counts).
        patience_s: how long a request may be under way (seconds).
    """

    def __init__(
        self,
        store: StoreConnection,
        platform: str,
        worker: int,
        reserve: Callable[[int], int],
        patience_s: float,
        now: Callable[[], float],
    ) -> None:
        self._store, self._platform, self._worker = store, platform, worker
        self._keys: dict[str, str] = {}
        self._payers: dict[str, str] = {}
        self._holders: dict[str, int] = {}
        self._unleased: dict[str, int] = {}
        self._there: set[str] = set()
        self._reserve, self._patience_s, self._now = reserve, patience_s, now
        self.deadline = SendDeadline(0.0)
        self._one_by_one = anyio.CapacityLimiter(1)
        self._changed: dict[str, Account] = {}
        self._wanted = anyio.Event()
        self._known_until: dict[str, float] = {}
        self._known_words: dict[str, float] = {}

    def know(self, accounts: Iterable[Account], payers: Mapping[str, Sequence[Account]]) -> None:
        """See `Peers`."""
        self._keys = {account.name: account_key(account) for account in accounts}
        self._payers = dict(self._keys)
        for payer, mine in payers.items():
            if len(mine) > 1:
                names = [account.name for account in mine]
                whose = _tag(" ".join(sorted(self._keys[name] for name in names))) if payer == UNKNOWN_PAYER else payer
                self._payers |= dict.fromkeys(names, f"payer {whose}")
        # each account has sent one request, outside of all budgets, to find out who pays for it
        self._unleased = {self._payers[mine[0].name]: len(mine) for mine in payers.values()}
        # each account is a holder of its own, even if several accounts have the same payer
        self._holders = {name: self._worker * MOST_ACCOUNTS + place for place, name in enumerate(self._keys)}

    def _row(self, connection: Connection, account: str) -> tuple[str, str]:
        """Return the platform and the payer of an account, after adding the missing rows of account and payer."""
        key, payer = self._keys[account], self._payers[account]
        for each in {key, payer} - self._there:
            connection.execute(_SQL["add_account"], (self._platform, each, each.encode()))
            self._there.add(each)
        return self._platform, payer

    async def _ask(self, question: Callable[[], T]) -> T | None:
        """Return the store's answer to a question; None where the store is out of reach."""
        try:
            return await anyio.to_thread.run_sync(question, limiter=self._one_by_one, abandon_on_cancel=True)
        except BulkError:
            return None

    async def lease(
        self, account: str, category: str, wish: Wish, now: float, late: float
    ) -> tuple[Lease, Bucket | None] | None:
        """See `Peers`."""
        return await self._ask(lambda: self._lease(account, category, wish, now, late))

    def _lease(self, account: str, category: str, wish: Wish, now: float, late: float) -> tuple[Lease, Bucket | None]:
        with self._store.transaction() as connection:
            row = (*self._row(connection, account), category)
            found = connection.execute(_SQL["lock_bucket"], row).fetchone()
            at = 0.0 if found is None else found[1]
            shared = None if found is None else decoded(found[0])
            if found is not None and shared is None:
                self._void(connection, found[0], row, at)
                return Lease(), None
            if shared is not None and wish.is_unlimited and now >= shared.bucket.reset_at:
                connection.execute(
                    _SQL["drop_bucket"], row
                )  # the platform has no limits any more: no later window is known
                shared = None
            if shared is None:
                return (unlimited(wish) if wish.is_unlimited else Lease()), None
            shared.write_off(at, self._patience_s)
            if category == ASKED_IN:
                self._spend_unleased(shared, row[1])
            lease = shared.lease(self._holders[account], wish, now, late, at)
            connection.execute(_SQL["keep_bucket"], (encoded(shared), *row))
        return lease, shared.bucket

    def _void(self, connection: Connection, state: bytes, row: tuple[str, str, str], at: float) -> None:
        """Put nothing in the place of a damaged budget, until no request that was lent of it can be under way any more;
        then the platform is asked for it anew.

        Args:
            at: the store's time, which may have been set back.
        """
        most_s = HOLD_S + self._patience_s
        until = _void_until(state)
        if until is None:
            _log.warning(
                "the store is damaged: the budget %s of %s can't be read; nothing is sent from it for %.0f s, and then "
                "it is what the platform says",
                row[2],
                row[0],
                most_s,
            )
        if until is None or until > at + most_s:
            connection.execute(_SQL["keep_bucket"], (msgspec.json.encode(_Void(at + most_s)), *row))
        elif at >= until:
            connection.execute(_SQL["drop_bucket"], row)

    def _spend_unleased(self, shared: SharedBucket, payer: str) -> None:
        """Take the requests off a budget, once, that found out whose tokens this worker has."""
        shared.spend(self._unleased.pop(payer, 0))

    async def marks(self, account: str) -> Mapping[str, int] | None:
        """See `Peers`."""
        return await self._ask(lambda: self._marks(account))

    def _marks(self, account: str) -> Mapping[str, int] | None:
        with self._store.transaction() as connection:
            row = self._row(connection, account)
            values = (self._worker, POLLER_S, self._platform, self._keys[account], self._worker, POLLER_S)
            is_poller = connection.execute(_SQL["poll"], values).fetchone() is not None
            rows = connection.execute(_SQL["lock_buckets"], row).fetchall()
            read = {category: decoded(state) for category, state in rows}
            found = {category: shared for category, shared in read.items() if shared is not None}
            if ASKED_IN in found and row[1] in self._unleased:
                self._spend_unleased(found[ASKED_IN], row[1])
                connection.execute(_SQL["keep_bucket"], (encoded(found[ASKED_IN]), *row, ASKED_IN))
        return {category: shared.bucket.mark for category, shared in found.items()} if is_poller else None

    async def told(
        self, account: str, limits: Mapping[str, Limits], marks: Mapping[str, int], now: float, late: float
    ) -> None:
        """See `Peers`."""
        await self._ask(lambda: self._told(self._payers[account], limits, marks, now, late))

    def _told(self, key: str, limits: Mapping[str, Limits], marks: Mapping[str, int], now: float, late: float) -> None:
        with self._store.transaction() as connection:
            rows = dict(connection.execute(_SQL["lock_buckets"], (self._platform, key)).fetchall())
            for category, one in sorted(limits.items()):
                row = (self._platform, key, category)
                if category not in rows:
                    made = SharedBucket.first_told(one.limit, one.remaining, one.reset, now, self._reserve)
                    if made is not None:
                        added = connection.execute(_SQL["add_bucket"], (*row, encoded(made))).rowcount
                        if added and category == ASKED_IN:
                            self._unleased.pop(key, 0)  # sent before the limits were asked for, which count them
                    continue
                shared = decoded(rows[category])
                if shared is None:
                    continue  # who leases from it sees to it
                if category == ASKED_IN:
                    self._spend_unleased(shared, key)
                if category in marks:
                    shared.told(one.limit, one.remaining, one.reset, marks[category], now, late, self._reserve)
                connection.execute(_SQL["keep_bucket"], (encoded(shared), *row))
            connection.execute("SELECT pg_notify('bulk_budget', %s)", (key,))

    def changed(self, account: Account) -> None:
        """See `Peers`."""
        is_frozen = account.trust is Trust.FROZEN
        if account.name not in self._keys or (account.is_minted and is_frozen):
            return  # each worker makes tokens of its own for an installation, so a refused one concerns it alone
        if not is_frozen and abs(account.paused_until - self._known_until.get(account.name, 0.0)) < NEAR_S:
            return
        self._changed[account.name] = account
        self._wanted.set()

    async def tell(self) -> None:
        """Tell the other workers of accounts as they change, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            changed, self._changed = self._changed, {}
            for account in changed.values():
                self._known_until[account.name] = account.paused_until
                now = self._now()
                paused_s, quiet_s = account.paused_until - now, account.quiet_until - now
                trust = account.trust
                if trust is Trust.FROZEN:
                    paused_s = max(paused_s, FROZEN_S)
                word = (
                    trust.value,
                    redact(account.paused_why),
                    paused_s,
                    quiet_s,
                    self._platform,
                    self._keys[account.name],
                )
                await self._ask(lambda name=account.name, word=word: self._tell(name, word))  # type: ignore[misc]

    def _tell(self, name: str, word: tuple[str, str, float, float, str, str]) -> None:
        with self._store.transaction() as connection:
            self._row(connection, name)
            told = connection.execute(_SQL["tell"], word).fetchone()
            if told is not None:
                self._known_words[word[-1]] = told[0]
            connection.execute("SELECT pg_notify('bulk_account', %s)", (word[-1],))

    async def hear(self, governor: Governor) -> None:
        """Apply to the governor what other workers have told of the accounts, each word once."""
        found = await self._ask(self._heard)
        now = self._now()
        names = {key: name for name, key in self._keys.items()}
        for key, word, trust, why, paused_s, quiet_s in found or ():
            account = governor.accounts.get(names.get(key, ""))
            if account is None or self._known_words.get(key) == word:
                continue
            self._known_words[key] = word
            if trust == Trust.FROZEN.value:
                account.freeze(now)
                continue
            until = now + paused_s
            self._known_until[account.name] = max(until, account.paused_until)
            if until > account.paused_until + NEAR_S:
                if quiet_s is not None and quiet_s > 0.0:
                    account.pause_all(until, why)
                else:
                    account.pause(until, why)
            governor.wake()

    def _heard(self) -> list[tuple[str, float, str, str, float, float | None]]:
        with self._store.using() as connection:
            return connection.execute(_SQL["hear"], (self._platform,)).fetchall()


def encoded(shared: SharedBucket) -> bytes:
    """Return a shared bucket as bytes for its row."""
    return msgspec.json.encode(shared.data())


def decoded(state: bytes) -> SharedBucket | None:
    """Return the shared bucket from the bytes of its row; None where they are of none: the row was damaged."""
    try:
        return SharedBucket.of_data(msgspec.json.decode(state))
    except (ValueError, RecursionError):
        return None


class _Void(msgspec.Struct, frozen=True):
    """What stands in the row of a budget that was damaged, until that moment (store's time)."""

    void_until: float


def _void_until(state: bytes) -> float | None:
    try:
        return msgspec.json.decode(state, type=_Void).void_until
    except (ValueError, RecursionError):
        return None
