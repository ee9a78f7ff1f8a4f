"""A budget out of which nothing can ever be sent: its limit is 0, or the reserve takes all of it.

A run that needs it is refused before anything is sent; one whose limit is lowered later stops instead of waiting for
ever. A single word is not enough for either.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from bulk.errors import BudgetTooSmall, BulkError, RunStopped
from bulk.govern.permits.accounts import Account, PermitQueue, Trust

HOPELESS_WORDS, HOPELESS_S = 3, 10.0
"""This many words in a row must say that the limit leaves nothing (count), in a run that sends already over this time
(seconds)."""


def note(queue: PermitQueue, limit: int, now: float, *, is_asked: bool) -> None:
    """Note that a header, or (`is_asked`) `/rate_limit` named a limit that leaves nothing (now: monotonic seconds)."""
    for each in (queue, *queue.siblings):
        if not each.hopeless:
            each.hopeless_at = now
        each.hopeless += 1
        each.hopeless_limit = limit
        each.is_hopeless_shown = each.is_hopeless_shown or not is_asked


def forget(queue: PermitQueue) -> None:
    """Forget words on a limit that leaves nothing: the platform names another one, or none."""
    for each in (queue, *queue.siblings):
        each.hopeless, each.is_hopeless_shown = 0, False


def forget_unconfirmed(account: Account, told: Container[str] = ()) -> None:
    """Forget words on limits that leave nothing which the newest answer of `/rate_limit`, or none, does not confirm.

    Args:
        told: the categories of which it named a limit.
    """
    for category, queue in account.queues.items():
        if queue.hopeless and queue.bucket is None and category not in told:
            forget(queue)


def is_hopeless(queue: PermitQueue, now: float) -> bool:
    """Return whether the limit leaves nothing to let out, as far as that can be known (now: monotonic seconds).

    A single word is never believed; in a run that sends, neither is one witness while another has said the contrary.
    """
    if queue.hopeless < HOPELESS_WORDS:
        return False
    bucket = queue.bucket
    if bucket is None:
        return True
    is_agreed = bucket.shown.heard_at == 0.0 or queue.is_hopeless_shown or queue.refused_at >= queue.hopeless_at
    return is_agreed and now - queue.hopeless_at >= HOPELESS_S


def _why(queue: PermitQueue, reserve: int) -> str:
    """Return the reason for people."""
    name = f"{queue.account.name}/{queue.category}"
    if queue.hopeless_limit <= 0:
        return f"the platform's limit of {name} is 0 requests: nothing that this run needs of it can be sent"
    return (
        f"limits.reserve keeps {reserve:,} of the {queue.hopeless_limit:,} requests of {name}: nothing is left to "
        "send. Lower limits.reserve (or its option: bulk run --reserve) and run the same command again."
    )


def reason_to_stop(
    queues: Iterable[PermitQueue], queue: PermitQueue, work_left: int, reserve: Callable[[int], int]
) -> BulkError | None:
    """Return why the run can't go on after a word about the budget of `queue`; None: it can, or does not need it.

    Args:
        queues: all permit queues of the run. work_left: requests still to be sent at `queue` (count).
    """
    if not (queue.awaits_items or work_left):
        return None
    why = _why(queue, reserve(queue.hopeless_limit))
    return RunStopped(why) if any(each.granted for each in queues) else BudgetTooSmall(why)


def work_of(
    queue: PermitQueue,
    now: float,
    accounts: Mapping[str, Account],
    pools: Mapping[str, Sequence[str]],
    work_left: Callable[[str, str], int],
) -> int:
    """Return the requests still to be sent that nobody can pay for if the limit of `queue` leaves nothing (count).

    That are its account's own, and those of pools of which no other member can pay.
    """
    name, category = queue.account.name, queue.category
    left = work_left(name, category)
    for pool, members in pools.items():
        mates = [accounts[member] for member in members if accounts[member].trust is not Trust.REFUSED]
        if name in members and all(
            is_hopeless(mate.queues[category], now) for mate in mates if category in mate.queues
        ):
            left += work_left(pool, category)
    return left


def may_begin(
    accounts: Mapping[str, Account], pools: Mapping[str, Sequence[str]], work_left: Callable[[str, str], int]
) -> bool:
    """Return whether the run may begin to send.

    Every credential must have been asked for its limits, unless only pools need it of which another member was told
    some. No queue that is needed may wait for a second word on a limit that leaves nothing.
    """
    for account in accounts.values():
        queues = account.queues.values()
        needed = [each for each in queues if each.awaits_items or work_left(account.name, each.category)]
        is_asked = account.was_asked or account.is_minted  # of minted tokens, the first answer tells the limits
        if not is_asked and (needed or not _is_spare(account, accounts, pools)):
            return False
        if any(queue.hopeless and queue.bucket is None for queue in needed):
            return False
    return True


def _is_spare(account: Account, accounts: Mapping[str, Account], pools: Mapping[str, Sequence[str]]) -> bool:
    """Return whether each pool of an account has another member of whose budgets something is known."""
    mates = [[accounts[mate] for mate in members] for members in pools.values() if account.name in members]
    known = [any(queue.bucket for mate in members for queue in mate.queues.values()) for members in mates]
    return bool(known) and all(known)


def set_reserve(queues: Iterable[PermitQueue], reserve: Callable[[int], int]) -> None:
    """Leave a reserve of every open window to others.

    Args:
        reserve: takes the size of a window and returns how many of its requests to leave to others (counts).

    Raises:
        ValueError: nothing of a bucket would be left; all stay as they are.
    """
    buckets = [(queue.category, queue.bucket) for queue in queues if queue.bucket is not None]
    for category, bucket in buckets:
        if 0 < bucket.limit <= reserve(bucket.limit):
            raise ValueError(f"it would leave nothing of {category} ({bucket.limit:,} requests)")
    for _, bucket in buckets:
        bucket.reserve = reserve(bucket.limit)
