"""The state of every bucket. The smallest operation there is: a model for new ones.

Source: specification, Rate limit status, GET /rate_limit.
"""

from bulk.capabilities import Returns
from bulk.model import Reply, Request, succeeded
from bulk.operation import Item, Operation, Steps
from bulk.proof import Proof
from bulk_jobs import accesses
from bulk_jobs.result_types import Limit
from bulk_jobs.shared import presence


class RateLimitItem(Item, frozen=True, kw_only=True):
    """Takes no arguments: the buckets are those of the credential."""


class GetRateLimit(Operation[RateLimitItem], Returns[dict[str, Limit]]):
    """Read what is left in every rate-limit category of the credential.

    Requests:  1, which costs no budget; 2 where the platform limits nothing.
    Category:  core, but free. Lane: none.
    Result:    category -> limit, used, remaining, reset (UTC epoch seconds); none where the platform limits nothing.
    Lost answer: a read is repeated.
    Source:    Rate limit status, GET /rate_limit.
    """

    name = "rate-limit.get"
    access = accesses.ANY
    Item = RateLimitItem
    is_momentary = True

    def steps(self, item: RateLimitItem) -> Steps:
        look = Request(
            method="GET", path="/rate_limit", accept=frozenset((200, 404)), is_fresh=True, proof=Proof(_flaw)
        )
        reply = yield from presence.look_surely(look)
        if reply.status == 404:
            return succeeded({}, note="this platform limits nothing: /rate_limit is not enabled (404)")
        return succeeded({name: each for name, each in reply.body["resources"].items() if isinstance(each, dict)})


def _flaw(reply: Reply) -> str:
    resources = reply.body.get("resources")
    is_told = isinstance(resources, dict) and any(isinstance(each, dict) for each in resources.values())
    return "" if is_told else "it holds no rate-limit category"
