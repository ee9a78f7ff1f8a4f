"""The state of every bucket. The smallest operation there is: a model for new ones.

Source: specification, Rate limit status, GET /rate_limit.
"""

from bulk.model import Request, succeeded
from bulk.operation import Item, Operation, Steps


class RateLimitItem(Item, frozen=True, kw_only=True):
    """Takes no arguments: the buckets are those of the credential."""


class GetRateLimit(Operation[RateLimitItem]):
    """Read what is left in every rate-limit category of the credential.

    Requests:  1, which costs no budget.
    Category:  core, but free. Lane: none.
    Result:    category -> limit, used, remaining, reset (UTC epoch seconds); none where the platform limits nothing.
    Lost answer: a read is repeated.
    Source:    Rate limit status, GET /rate_limit.
    """

    name = "rate-limit.get"
    Item = RateLimitItem
    is_momentary = True

    def steps(self, item: RateLimitItem) -> Steps:
        reply = yield Request(method="GET", path="/rate_limit", accept=frozenset((200, 404)), is_fresh=True)
        if reply.status == 404:
            return succeeded({}, note="this platform limits nothing: /rate_limit is not enabled (404)")
        resources = reply.body.get("resources") if isinstance(reply.body, dict) else None
        return succeeded(resources if resources is not None else reply.body)
