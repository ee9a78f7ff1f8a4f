"""Payers: accounts that share one budget, and accounts of which the platform does not say whose they are.

Members of a pool that may not ask `GET /user` (installations, tokens without that permission) count as one payer at
first: in doubt, too little is sent. What each of them is told of its limits may contradict that. They are asked in
turn, several times, and two of them are separate where no answer of the one fits between those of the other: another
limit, another end of the window, or, after a pause in which nothing was sent, more left than the other has. A witness
that is a little late is not taken for another payer.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from bulk.govern.budgets.buckets import LATE_S
from bulk.govern.permits.accounts import Account, Trust
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import Limits

ROUNDS = 3
"""How often each member is asked (count): a window that ends meanwhile shows in one round only."""
APART_S = 2 * LATE_S
"""Ends of windows that lie further apart are not the same end, told by a late witness (seconds)."""


class Told(NamedTuple):
    """What one answer says of limits, by category; `at`: when it was made (UTC epoch seconds, platform time)."""

    at: float
    limits: Mapping[str, Limits]


Ask = Callable[[Secret], Awaitable[Told]]


async def asked_in_turn(tokens: Mapping[str, Secret], ask: Ask) -> dict[str, list[Told]]:
    """Ask about each token, by the member's name, in turn, `ROUNDS` times."""
    found: dict[str, list[Told]] = {name: [] for name in tokens}
    for _ in range(ROUNDS):
        for name, token in tokens.items():
            found[name].append(await ask(token))
    return found


def parted(told: Mapping[str, Sequence[Told]], *, is_quiet: bool) -> list[list[str]]:
    """Return the members in groups that may have one payer each, in their order.

    Args:
        told: what each member was told, in the order in which they were asked in each round.
        is_quiet: nothing was sent for a while, so that what is left is told by late witnesses, too.
    """
    groups: list[list[str]] = []
    for name, said in told.items():
        fits = (each for each in groups if not any(are_apart(told[other], said, is_quiet=is_quiet) for other in each))
        group = next(fits, None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return groups


def are_apart(first: Sequence[Told], second: Sequence[Told], *, is_quiet: bool) -> bool:
    """Return whether what two members were told contradicts that one payer pays for both; `first` was asked first in
    each round."""
    every = [set(each.limits) for each in (*first, *second)]
    latest = max((each.at for each in (*first, *second)), default=0.0)
    return any(
        _contradict([each.limits[name] for each in first], [each.limits[name] for each in second], latest, is_quiet)
        for name in set.intersection(*every)
    )


def _contradict(one: Sequence[Limits], other: Sequence[Limits], now: float, is_quiet: bool) -> bool:
    sizes = {each.limit for each in one}, {each.limit for each in other}
    if len(sizes[0]) == len(sizes[1]) == 1 and sizes[0] != sizes[1]:
        return True
    ends = sorted(([each.reset for each in one], [each.reset for each in other]), key=min)
    if min(ends[0]) > now + LATE_S and max(ends[0]) + APART_S < min(ends[1]):
        return True
    left = [each.remaining for each in one], [each.remaining for each in other]
    is_more = all(later > earlier for earlier, later in zip(*left, strict=True))
    return is_quiet and (is_more or all(later > earlier for later, earlier in zip(left[0][1:], left[1], strict=False)))


def join(accounts: Sequence[Account]) -> None:
    """Let these accounts share their buckets, category by category, as one payer pays for all their requests."""
    for name in {name for account in accounts for name in account.queues}:
        queues = [account.queues[name] for account in accounts if name in account.queues]
        for queue in queues:
            queue.siblings = tuple(other for other in queues if other is not queue)


class UnknownPayer:
    """Accounts that count as one payer until their answers contradict that.

    Args:
        take: takes in what an account was told, and when it was asked (monotonic).
    """

    def __init__(
        self,
        accounts: Sequence[Account],
        payers: dict[str, "UnknownPayer"],
        take: Callable[[Account, Told, float], None],
    ) -> None:
        self._accounts, self._payers, self._take = accounts, payers, take
        self._compared: set[tuple[str, int]] = set()
        for account in accounts:
            payers.pop(account.name, None)
            if len(accounts) > 1:
                payers[account.name] = self
        join(accounts)

    @property
    def _usable(self) -> list[Account]:
        return [each for each in self._accounts if each.trust is not Trust.REFUSED] or [self._accounts[0]]

    @property
    def _speaker(self) -> Account:
        return self._usable[0]

    def speaks(self, account: Account) -> bool:
        """Return whether what `/rate_limit` tells this account is said of all: the others may be told of another
        budget."""
        return account is self._speaker

    def compares(self, account: Account) -> bool:
        """Return whether this is the account after whose questions all are compared."""
        return account in self._usable[1:2]

    @property
    def is_empty(self) -> bool:
        """Whether a budget that the members have together is used up, and nothing is under way."""
        buckets = [queue.bucket for queue in self._speaker.queues.values() if queue.bucket is not None]
        return any(bucket.available <= 0 and bucket.in_flight == 0 for bucket in buckets)

    def note_empty(self) -> None:
        """Have all compared, once in each window that is used up: another one may have something left."""
        speaker = self._speaker
        used_up = {
            (name, queue.bucket.window)
            for name, queue in speaker.queues.items()
            if queue.bucket is not None and queue.bucket.available <= 0
        }
        if used_up - self._compared:
            self._compared |= used_up
            for account in self._usable[1:2]:
                account.ask_soon()

    @property
    def sent(self) -> int:
        """Requests that were let out with all budgets of the members (count)."""
        return sum(queue.bucket.sent for queue in self._speaker.queues.values() if queue.bucket is not None)

    async def compare(self, ask: Ask, now: Callable[[], float], sleep: Callable[[float], Awaitable[None]]) -> None:
        """Ask about all members, and part those whose answers contradict each other."""
        sent = self.sent
        if self.is_empty:
            await sleep(LATE_S)
        is_quiet = self.is_empty and self.sent == sent
        usable = {each.name: each for each in self._accounts if each.trust in (Trust.PROVEN, Trust.UNPROVEN)}
        asked_at = now()
        told = await asked_in_turn({name: account.token for name, account in usable.items()}, ask)
        groups = [[usable[name] for name in group] for group in parted(told, is_quiet=is_quiet and self.sent == sent)]
        if len(groups) < 2 or any(self._payers.get(name) is not self for name in usable):
            return
        speaker = self._speaker
        leaving = [group for group in groups if speaker not in group]
        if any(account.in_flight for group in leaving for account in group):
            return  # the next time: their requests are paid by the budget of all
        gone = {account.name for group in leaving for account in group}
        UnknownPayer([each for each in self._accounts if each.name not in gone], self._payers, self._take)
        for group in leaving:
            for queue in (queue for account in group for queue in account.queues.values()):
                queue.bucket, queue.refused_window, queue.confirmed_window, queue.hopeless = None, 0, 0, 0
            UnknownPayer(group, self._payers, self._take)
            self._take(group[0], told[group[0].name][-1], asked_at)
            for account in group:
                account.ask_soon()
