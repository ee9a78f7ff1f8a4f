"""Rate limit status: the requests left in every category. Asking costs nothing; where limits are off, it is 404."""

from __future__ import annotations

from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.refusals import not_found
from bulk.sandbox.http.routes import Area, Route

RATE_REMOVED_IN = "2026-03-10"


async def get_rate_limit(call: Call) -> Answer:
    """`{resources: {category: {limit, used, remaining, reset}}}`, and `rate` (the same as core) before 2026-03-10."""
    budgets = call.context.budgets
    if budgets.is_off:
        raise not_found()
    resources = {
        category: budgets.window(call.payer, category, call.now).status(call.now) for category in budgets.limits
    }
    body: dict[str, object] = {"resources": resources}
    if call.version < RATE_REMOVED_IN:
        body["rate"] = resources["core"]
    return Answer(body=body)


AREA = Area("Rate limit status", (Route("GET", "/rate_limit", get_rate_limit, category=None, anonymous=True),))
