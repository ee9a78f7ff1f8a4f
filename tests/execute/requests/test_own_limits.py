"""Which waits concern one request alone."""

import pytest

from bulk.execute.requests.own_limits import SERVED, TRIES, OwnLimits
from bulk.model import Effect, ErrorCode, Reply, Request
from bulk.platform.classification import Verdict, VerdictKind

READ = Request(method="GET", path="/repos/acme/runbook/readme")
WAIT_S = 60.0
REPLY = Reply(status=429, headers={})


def told(kind: VerdictKind) -> Verdict:
    """An answer that says when to come back."""
    return Verdict(kind, ErrorCode.RATE_LIMITED, "come back later", WAIT_S)


@pytest.mark.parametrize(("served", "kind"), [(SERVED - 1, VerdictKind.BUSY), (SERVED, VerdictKind.SERVER_ERROR)])
def test_a_request_waits_alone_where_others_were_served(served: int, kind: VerdictKind) -> None:
    """All wait at first, and again where too few others were served since, not counting those that were under way."""
    own = OwnLimits()
    assert own.judged(READ, told(VerdictKind.BUSY), REPLY, 0, 2, 0.0).kind is VerdictKind.BUSY
    assert own.judged(READ, told(VerdictKind.BUSY), REPLY, 2 + served, 2, 100.0).kind is kind
    assert (own.until(READ, 0.0) == 100.0 + WAIT_S) == (kind is VerdictKind.SERVER_ERROR)


def test_an_empty_budget_concerns_all() -> None:
    """Whichever request meets it, however often, and whoever was served between."""
    own = OwnLimits()
    for number in range(2 * TRIES):
        verdict = own.judged(READ, told(VerdictKind.LIMITED_PRIMARY), REPLY, 100 * number, 2, 100.0 * number)
        assert verdict.kind is VerdictKind.LIMITED_PRIMARY
    assert own.until(READ, 0.0) == 0.0


def test_an_answer_ends_it() -> None:
    """Of a request that was answered otherwise nothing is remembered."""
    own = OwnLimits()
    own.judged(READ, told(VerdictKind.BUSY), REPLY, 0, 0, 0.0)
    own.judged(READ, Verdict(VerdictKind.ACCEPTED), REPLY, 1, 0, 1.0)
    assert own.told == {}


def test_what_is_told_to_wait_in_the_same_place_waits_alone_at_once() -> None:
    """Another path of the repository does not hold up everything anew, until something there is served."""
    own, other = OwnLimits(), Request(method="GET", path="/repos/Acme/runbook/contents/a")
    own.judged(READ, told(VerdictKind.BUSY), REPLY, 0, 0, 0.0)
    assert own.judged(other, told(VerdictKind.BUSY), REPLY, 0, 0, 0.0).kind is VerdictKind.BUSY
    own.judged(READ, told(VerdictKind.BUSY), REPLY, SERVED, 0, 100.0)
    later = Request(method="GET", path="/repos/acme/runbook/contents/b")
    assert own.until(later, 0.0) == 100.0 + WAIT_S
    assert own.judged(later, told(VerdictKind.BUSY), REPLY, SERVED, 0, 100.0).kind is VerdictKind.SERVER_ERROR
    own.judged(later, Verdict(VerdictKind.ACCEPTED), REPLY, SERVED, 0, 200.0)
    assert own.judged(later, told(VerdictKind.BUSY), REPLY, SERVED, 0, 200.0).kind is VerdictKind.BUSY


def test_a_place_is_told_from_a_limit_of_all_by_any_of_its_paths() -> None:
    """Each of them would hold up everything once otherwise."""
    own = OwnLimits()
    paths = [Request(method="GET", path=f"/repos/acme/runbook/contents/{number}") for number in range(3)]
    kinds = [own.judged(one, told(VerdictKind.BUSY), REPLY, 2 * good, 0, 0.0).kind for good, one in enumerate(paths)]
    assert kinds == [VerdictKind.BUSY, VerdictKind.BUSY, VerdictKind.SERVER_ERROR]


def test_a_place_that_serves_nothing_is_given_up() -> None:
    """What is still to be read there ends without being sent, but for one request each time that the wait is over;
    writes, other places, and what comes after the first good answer are sent."""
    own, now = OwnLimits(), 0.0
    for number in range(TRIES + 1):
        one = Request(method="GET", path=f"/repos/acme/runbook/contents/{number // 3}")
        assert own.given_up(one, now) is None
        own.judged(one, told(VerdictKind.BUSY), REPLY, 100 * number, 0, now)
        now += WAIT_S
    new = Request(method="GET", path="/repos/acme/runbook/contents/new")
    found = own.given_up(new, now - 1.0)
    assert found is not None
    assert found[1].kind is VerdictKind.REFUSED
    assert own.given_up(new, now) is None
    assert own.given_up(Request(method="GET", path="/repos/acme/other/readme"), now - 1.0) is None
    write = Request(method="PUT", path="/repos/acme/runbook/contents/new", effect=Effect.COMPARE_AND_SWAP)
    assert own.given_up(write, now - 1.0) is None
    own.judged(new, Verdict(VerdictKind.ACCEPTED), REPLY, 0, 0, now)
    assert own.given_up(new, now - 1.0) is None
