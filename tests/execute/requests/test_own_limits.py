"""Which waits concern one request alone."""

import pytest

from bulk.execute.requests.own_limits import SERVED, TRIES, OwnLimits
from bulk.model import ErrorCode, Request
from bulk.platform.classification import Verdict, VerdictKind

READ = Request(method="GET", path="/repos/acme/runbook/readme")
WAIT_S = 60.0


def told(kind: VerdictKind) -> Verdict:
    """An answer that says when to come back."""
    return Verdict(kind, ErrorCode.RATE_LIMITED, "come back later", WAIT_S)


@pytest.mark.parametrize(("served", "kind"), [(SERVED - 1, VerdictKind.BUSY), (SERVED, VerdictKind.SERVER_ERROR)])
def test_a_request_waits_alone_where_others_were_served(served: int, kind: VerdictKind) -> None:
    """All wait at first, and again where too few others were served since, not counting those that were under way."""
    own = OwnLimits()
    assert own.judged(READ, told(VerdictKind.BUSY), 0, 2, 0.0).kind is VerdictKind.BUSY
    assert own.judged(READ, told(VerdictKind.BUSY), 2 + served, 2, 100.0).kind is kind
    assert (own.until(READ, 0.0) == 100.0 + WAIT_S) == (kind is VerdictKind.SERVER_ERROR)


def test_an_empty_budget_concerns_all() -> None:
    """Whichever request meets it, however often, and whoever was served between."""
    own = OwnLimits()
    for number in range(2 * TRIES):
        verdict = own.judged(READ, told(VerdictKind.LIMITED_PRIMARY), 100 * number, 2, 100.0 * number)
        assert verdict.kind is VerdictKind.LIMITED_PRIMARY
    assert own.until(READ, 0.0) == 0.0


def test_an_answer_ends_it() -> None:
    """Of a request that was answered otherwise nothing is remembered."""
    own = OwnLimits()
    own.judged(READ, told(VerdictKind.BUSY), 0, 0, 0.0)
    own.judged(READ, Verdict(VerdictKind.ACCEPTED), 1, 0, 1.0)
    assert own.told == {}
