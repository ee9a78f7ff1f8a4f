"""What is believed of an answer to which a redirect has led. Pure.

The platform leads to where a thing lies now, and what is found there counts. That nothing is found there does not: a
gateway leads to its login page, and an old address may lead anywhere. So absence behind a redirect is a `bad_response`:
the read is repeated, and nothing is ever deleted, created or left alone because of it. Where one item has been led from
a repository's former name to nothing with all its tries, others of that repository are for a while not repeated: they
end as that one did, at their first look. A redirect gives another name to a repository, an organization or an
enterprise; what follows that name, and what the query asks for, stay the same. Source: failures.md row 9.
"""

from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from bulk.model import ErrorCode, Reply, Request
from bulk.platform.classification import MOVED, Verdict, VerdictKind
from bulk.proof import Proof

REDIRECTS = 5
"""Most redirects that one request follows (count)."""

MOVED_S = 60.0
"""How long a repository counts as moved to where some of its items are not, after one has taken all its tries
(seconds)."""

_ABSENT = frozenset((404, 410))
_PAGES_AND_JSON = (".html", ".htm", ".xhtml", ".json", ".ipynb", ".map", ".webmanifest")
"""How the names of files end that a server may send as HTML or JSON."""
_NAMED = {"repos": 4, "orgs": 3, "enterprises": 3}
"""How many segments of a path, the empty one before it included, a rename changes."""


def judged_elsewhere(request: Request, reply: Reply, verdict: Verdict) -> Verdict:
    """Return how to treat the answer to a read that was led elsewhere, which `verdict` treats like any other."""
    # a list that decides something is always read fresh; a list that is only reported may be empty
    is_empty = request.is_fresh and verdict.kind is VerdictKind.ACCEPTED and reply.body == []
    if not is_empty and reply.status not in _ABSENT:
        return verdict
    found = "an empty list" if is_empty else f"nothing (status {reply.status})"
    why = f"the platform redirects to where there is {found}; that does not show what there is; {MOVED}"
    return Verdict(VerdictKind.BAD_RESPONSE, ErrorCode.BAD_RESPONSE, why, location=request.path)


def same_elsewhere(asked: Request, target: str) -> tuple[str, str] | None:
    """Return path and query of a redirect that leads a read to `target`; None where it leads to something else.

    Parameters that the redirect does not repeat stay, so that a file is never read of another branch.
    """
    path, _, query = target.partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    wanted = parse_qsl(asked.query, keep_blank_values=True)
    is_other = any(given.get(name, value) != value for name, value in wanted)
    if is_other or not unquote(path).rstrip("/").endswith(_lasting(asked.path)):
        return None
    kept = urlencode([(name, value) for name, value in wanted if name not in given])
    return path, "&".join(filter(None, (query, kept)))


def _lasting(path: str) -> str:
    """Return what follows the name in a path, decoded; all of it where it has no name, nothing where all are names."""
    segments = path.split("/")
    if segments[1] == "enterprises" and segments[3:4] == ["teams"]:
        return ""  # teams and organizations may be renamed, too
    count = _NAMED.get(segments[1], 0)
    return unquote("/" + "/".join(segments[count:]) if count else path)


def proof_of_download(request: Request, url: str) -> Proof | None:
    """Return what a download from another place must show: its kind, unless the file may itself be of the kind that
    pages to log in and gateways' messages are of."""
    places = unquote(request.path).lower(), urlsplit(url).path.lower()
    if request.proof is None or any(each.endswith(_PAGES_AND_JSON) for each in places):
        return None
    return request.proof.elsewhere()


def led_astray(why: str) -> Verdict:
    """Return the verdict on a redirect that is not followed: it is final."""
    return Verdict(VerdictKind.REFUSED, ErrorCode.BAD_RESPONSE, why)


LED_TO_ANOTHER = Verdict(
    VerdictKind.BAD_RESPONSE,
    ErrorCode.BAD_RESPONSE,
    "the platform redirects to something else than was asked for; not followed",
)
"""The verdict on a redirect that `same_elsewhere` refuses: the read is repeated."""


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
