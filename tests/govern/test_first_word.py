"""What others took of a shared budget before its workers began stays taken, whatever is under way when that is told."""

import random

import pytest

from bulk.govern.budgets.shared_bucket import SharedBucket, Wish

LIMIT, RESET = 40, 1_000_090
NOW = 1_000_000.0


class Run:
    """Workers that send their tokens at any time, and `/rate_limit`, which counts what it has seen."""

    def __init__(self, dice: random.Random) -> None:
        self.dice, self.used = dice, dice.randrange(LIMIT)
        shared = SharedBucket.first_told(LIMIT, LIMIT - self.used, RESET, NOW, lambda _: 0)
        assert shared is not None
        self.shared, self.left = shared, LIMIT - self.used
        self.holds: dict[int, dict[int, int]] = {worker: {} for worker in range(3)}
        self.questions: list[tuple[int, int]] = []

    def lease(self, worker: int) -> int:
        """Return how many tokens a worker is lent; it gives account of all that it has sent."""
        held = {number: tokens for number, tokens in self.holds[worker].items() if tokens}
        wish = Wish(self.dice.randint(1, 8), 100, 8, held=held)
        lease = self.shared.lease(worker, wish, NOW, NOW, 0.0)
        self.holds[worker] = {**held, lease.hold: held.get(lease.hold, 0) + lease.tokens}
        return lease.tokens

    def send(self, worker: int) -> None:
        """Send a request for one token, if the worker has one."""
        for number, tokens in self.holds[worker].items():
            if tokens:
                self.holds[worker][number] -= 1
                self.used += 1
                return

    def step(self) -> None:
        """Let something happen."""
        worker = self.dice.randrange(3)
        match self.dice.randrange(4):
            case 0:
                self.lease(worker)
            case 1:
                self.send(worker)
            case 2:
                self.questions.append((self.shared.bucket.mark, LIMIT - self.used))
            case _ if self.questions:
                mark, remaining = self.questions.pop(0)
                self.shared.told(LIMIT, remaining, RESET, mark, NOW, NOW, lambda _: 0)


@pytest.mark.parametrize("seed", range(40))
def test_what_others_took_stays_taken(seed: int) -> None:
    """No more is lent than was left at first, and all of that. A word that came while tokens were out made the first
    one forgotten, and more were lent."""
    run = Run(random.Random(seed))
    for _ in range(300):
        run.step()
        assert run.used <= LIMIT
    for worker in (0, 1, 2) * 2 * LIMIT:
        run.lease(worker)
        for _ in range(8):
            run.send(worker)
        assert run.used <= LIMIT
    assert run.used == LIMIT


@pytest.mark.parametrize("seed", range(10))
def test_requests_that_the_first_word_had_counted_are_lent_again(seed: int) -> None:
    """What a worker sent without a token, and took off after the first word had counted it, comes back with the next
    word."""
    run = Run(random.Random(seed))
    run.shared.spend(3)
    run.shared.told(LIMIT, LIMIT - run.used, RESET, run.shared.bucket.mark, NOW, NOW, lambda _: 0)
    for worker in (0, 1, 2) * 2 * LIMIT:
        run.lease(worker)
        for _ in range(8):
            run.send(worker)
    assert run.used == LIMIT
