"""`rate-limit.get`."""

from bulk.model import OutcomeKind
from jobs.rate_limit import GetRateLimit
from tests.jobs.driver import reply, run

GET = GetRateLimit()
CORE = {"limit": 5000, "used": 1, "remaining": 4999, "reset": 1_763_712_000}


def test_the_categories_are_the_result():
    """One fresh read; the buckets by category, also where the old object `rate` is beside them."""
    driven = run(GET, {}, reply(body={"resources": {"core": CORE}, "rate": CORE}))
    assert driven.shown() == ["GET /rate_limit"]
    assert driven.requests[0].is_fresh
    assert driven.outcome.result == {"core": CORE}


def test_a_platform_without_limits():
    """404 means that limits are off: a success that says so."""
    driven = run(GET, {}, reply(404))
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert "limits nothing" in driven.outcome.result["note"]


def test_an_answer_without_categories_is_given_as_it_came():
    """Nothing is made up."""
    assert run(GET, {}, reply(body={"rate": CORE})).outcome.result == {"rate": CORE}
    assert run(GET, {}, reply(body=[1])).outcome.result == [1]
