"""`rate-limit.get`."""

import pytest

from bulk.model import OutcomeKind
from bulk_jobs.rate_limit import GetRateLimit
from tests.jobs.driver import reply, run

GET = GetRateLimit()
CORE = {"limit": 5000, "used": 1, "remaining": 4999, "reset": 1_763_712_000}


def test_the_categories_are_the_result():
    """One fresh read; the buckets by category, also where the old object `rate` is beside them."""
    driven = run(GET, {}, reply(body={"resources": {"core": CORE}, "rate": CORE}))
    assert driven.shown() == ["GET /rate_limit"]
    assert driven.requests[0].is_fresh
    assert driven.outcome.result == {"core": CORE}


def test_what_is_no_category_is_left_out():
    """One that is not used any more may be null."""
    assert run(GET, {}, reply(body={"resources": {"core": CORE, "source_import": None}})).outcome.result == {
        "core": CORE
    }


def test_a_platform_without_limits():
    """404 means that limits are off, where a second one says so too: a success that says so."""
    assert run(GET, {}, reply(404), reply(body={"resources": {"core": CORE}})).outcome.result == {"core": CORE}
    driven = run(GET, {}, reply(404), reply(404))
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert "limits nothing" in driven.outcome.result["note"]


@pytest.mark.parametrize("body", [{"rate": CORE}, {"resources": {}}, {"resources": {"core": 5}}, [1], {}, None, "ok"])
def test_an_answer_without_categories_is_not_believed(body):
    """An answer that tells of no category is somebody else's."""
    assert run(GET, {}, reply(body=body)).is_disbelieved
