"""What is believed of an answer to which a redirect has led. Pure.

The platform leads to where a thing lies now, and what is found there counts. That nothing is found there does not: a
gateway leads to its login page, and an old address may lead anywhere. So absence behind a redirect is a `bad_response`:
the read is repeated, and nothing is ever deleted, created or left alone because of it. Where one item has been led from
a repository's former name to nothing with all its tries, others of that repository are for a while not repeated: they
end as that one did, at their first look. Source: failures.md row 9.
"""

from bulk.model import ErrorCode, Reply, Request
from bulk.platform.classification import MOVED, Verdict, VerdictKind

REDIRECTS = 5
"""Most redirects that one request follows (count)."""

MOVED_S = 60.0
"""How long a repository counts as moved to where some of its items are not, after one has taken all its tries
(seconds)."""

_ABSENT = frozenset((404, 410))


def judged_elsewhere(request: Request, reply: Reply, verdict: Verdict) -> Verdict:
    """Return how to treat the answer to a read that was led elsewhere, which `verdict` treats like any other."""
    # a list that decides something is always read fresh; a list that is only reported may be empty
    is_empty = request.is_fresh and verdict.kind is VerdictKind.ACCEPTED and reply.body == []
    if not is_empty and reply.status not in _ABSENT:
        return verdict
    found = "an empty list" if is_empty else f"nothing (status {reply.status})"
    why = f"the platform redirects to where there is {found}; that does not show what there is; {MOVED}"
    return Verdict(VerdictKind.BAD_RESPONSE, ErrorCode.BAD_RESPONSE, why, location=request.path)


def led_astray(why: str) -> Verdict:
    """Return the verdict on a redirect that is not followed: it is final."""
    return Verdict(VerdictKind.REFUSED, ErrorCode.BAD_RESPONSE, why)


class Moves:
    """Repositories whose former address leads, all tries of an item long, to nothing below another one."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str], float] = {}

    def note(self, move: tuple[str, str], now: float) -> None:
        """Note that an item has taken all its tries (now: monotonic seconds)."""
        self._until = {each: until for each, until in self._until.items() if until > now}
        self._until[move] = now + MOVED_S

    def is_known(self, move: tuple[str, str], now: float) -> bool:
        """Return whether another item has taken all its tries a short time ago (now: monotonic seconds)."""
        return now < self._until.get(move, now)


def move_of(path: str, verdict: Verdict | None) -> tuple[str, str] | None:
    """Return the two addresses of a repository if a read of `path` was led from the one to nothing below the other.

    None: the answer says something else, or the redirect did not keep what follows the repository.
    """
    if verdict is None or verdict.kind is not VerdictKind.BAD_RESPONSE or not verdict.location:
        return None
    former, rest = "/".join(path.split("/")[:4]), path.split("/")[4:]
    tail = "/" + "/".join(rest)
    if not former.startswith("/repos/") or not rest or not verdict.location.endswith(tail):
        return None
    return former, verdict.location.removesuffix(tail)
