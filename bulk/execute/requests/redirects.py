"""What is believed of an answer to which a redirect has led. Pure.

The platform leads to where a thing lies now, and what is found there counts. That nothing is found there does not: a
gateway leads to its login page, and an old address may lead anywhere. So absence behind a redirect is a `bad_response`:
the read is repeated, and nothing is ever deleted, created or left alone because of it. Source: failures.md row 9.
"""

from bulk.model import ErrorCode, Reply, Request
from bulk.platform.classification import MOVED, Verdict, VerdictKind

REDIRECTS = 5
"""Most redirects that one request follows (count)."""

_ABSENT = frozenset((404, 410))


def judged_elsewhere(request: Request, reply: Reply, verdict: Verdict) -> Verdict:
    """Return how to treat the answer to a read that was led elsewhere, which `verdict` treats like any other."""
    # a list that decides something is always read fresh; a list that is only reported may be empty
    is_empty = request.is_fresh and verdict.kind is VerdictKind.ACCEPTED and reply.body == []
    if not is_empty and reply.status not in _ABSENT:
        return verdict
    found = "an empty list" if is_empty else f"nothing (status {reply.status})"
    why = f"the platform redirects to where there is {found}; that does not show what there is; {MOVED}"
    return Verdict(VerdictKind.BAD_RESPONSE, ErrorCode.BAD_RESPONSE, why)


def led_astray(why: str) -> Verdict:
    """Return the verdict on a redirect that is not followed: it is final."""
    return Verdict(VerdictKind.REFUSED, ErrorCode.BAD_RESPONSE, why)
