"""The ways in which members of a pool can be wrong: each changes three members that were right."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.hostile.http.limits import Answers, Headers
from tests.hostile.http.messages import JSON, Answer, Ask
from tests.hostile.pools.members import NOTHING, Member

ALWAYS = float("inf")
RETRIED_S = 30.0
"""Where no other member has anything left, items are tried with one that is in trouble, and then pause (seconds)."""
SLOWER = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
Change = Callable[[Sequence[Member]], None]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to be wrong.

    Attributes:
        change: what it does to the members, of which there are two at least.
        refused: requests beyond the budgets that nobody can avoid (count).
        idle_s: how long nothing may be sent while a member could be used (seconds).
        may_fail: items end as `failed`, as nobody can know better.
        reserve: `limits.reserve` (count). stops: the exit code of a run that can't go on; 0: it does all items.
        lets_create: otherwise a member refuses all that follows a look at once; what is refused because of a limit, and
            could be created twice, stays with its member.
    """

    name: str
    change: Change
    refused: int = 0
    idle_s: float = 2.0
    may_fail: bool = False
    reserve: int = 0
    stops: int = 0
    lets_create: bool = True


def said(status: int, message: str, *headers: tuple[str, str]) -> Answer:
    """A refusal in the platform's own words."""
    return Answer(status, json.dumps({"message": message}).encode(), (JSON, *headers))


BAD, GATEWAY = said(401, "Bad credentials"), Answer(502, b"<html><body>Bad gateway</body></html>")
SUSPENDED = said(403, "Sorry. Your account was suspended.")
NOT_FOUND, FORBIDDEN = said(404, "Not Found"), said(403, "Resource not accessible by personal access token")


def slower(seconds: str = "") -> Answer:
    """A limit that no budget explains."""
    return said(429, SLOWER, *([("retry-after", seconds)] if seconds else []))


def _refused(place: int, answer: Answer, since: float, until: float, *, is_all: bool = True) -> Change:
    """A member is refused for a while (seconds since the run began), from its 20th request on or from `since` on; with
    `is_all`, `/rate_limit` and `/user` are as well."""

    def change(members: Sequence[Member]) -> None:
        member = members[place]
        begins: list[float] = []

        def instead(ask: Ask, now: float) -> Answer | None:
            if not begins and (len(member.heard) >= 20 or now >= since):
                begins.append(now)
            is_meant = is_all or ask.path not in ("/rate_limit", "/user")
            return answer if begins and now < until and is_meant else None

        member.instead = instead
        # what follows a pause that was told, or grew, is not needless
        member.is_free = lambda now: not begins or now < begins[0] or now > 3 * until

    return change


def _hidden(answer: Answer, is_meant: Callable[[Ask], bool]) -> Change:
    """What the first member has done is answered so, from its 20th request on."""

    def change(members: Sequence[Member]) -> None:
        members[0].hides = lambda ask, now: answer if len(members[0].heard) > 20 and is_meant(ask) else None
        members[0].is_free = lambda now: False

    return change


def _mute(place: int, is_meant: Callable[[Ask], bool]) -> Change:
    """Some requests of a member are never answered."""

    def change(members: Sequence[Member]) -> None:
        members[place].instead = lambda ask, now: NOTHING if is_meant(ask) else None
        members[place].is_free = lambda now: False

    return change


def _few(wait: str, most: int = 1) -> Change:
    """The first member is told to wait that long whenever more than so many of its requests come at once."""

    def change(members: Sequence[Member]) -> None:
        newest: list[float] = []

        def instead(ask: Ask, now: float) -> Answer | None:
            if ask.path in ("/rate_limit", "/user"):
                return None
            newest[:] = [*(at for at in newest if at > now - 0.05), now]
            return slower(wait) if len(newest) > most else None

        members[0].instead, members[0].is_free = instead, lambda now: False

    return change


def _blind(answer: Answer) -> Change:
    """The first member does not see some repositories."""

    def change(members: Sequence[Member]) -> None:
        members[0].refuses = lambda ask, now: answer if "/repos/acme/r1" in ask.path else None

    return change


def _alone(change: Change, answer: Answer) -> Change:
    """Only the first member sees what is there, and it is wrong in that way: others that settle for it see nothing."""

    def alone(members: Sequence[Member]) -> None:
        change(members)
        for member in members[1:]:
            member.refuses = lambda ask, now: answer if ask.path.startswith(("/repos/", "/orgs/")) else None

    return alone


def _asked_as(place: int, answers: Answers) -> Change:
    def change(members: Sequence[Member]) -> None:
        members[place].pays.asked_as = answers

    return change


def _shown_as(headers: Headers) -> Change:
    def change(members: Sequence[Member]) -> None:
        members[0].pays.shown_as = headers

    return change


def _of_another(place: int, *, is_shown: bool = False, is_asked: bool = False) -> Change:
    """A member is told of the budget of another one."""

    def change(members: Sequence[Member]) -> None:
        other = members[1 - place].pays
        members[place].shown = other if is_shown else None
        members[place].asked = other if is_asked else None

    return change


def _dated(*ahead_s: float) -> Change:
    def change(members: Sequence[Member]) -> None:
        for member, seconds in zip(members, ahead_s, strict=False):
            member.date_s = seconds

    return change


def _windows(*seconds: int) -> Change:
    def change(members: Sequence[Member]) -> None:
        for member, each in zip(members, seconds, strict=False):
            member.pays.window_s = each

    return change


def _limits(*counts: int) -> Change:
    def change(members: Sequence[Member]) -> None:
        for member, count in zip(members, counts, strict=False):
            member.pays.size = count

    return change


def _spent(*left: int) -> Change:
    """Others have left only so much when the run begins."""

    def change(members: Sequence[Member]) -> None:
        for member, count in zip(members, left, strict=False):
            member.spent_before = member.pays.size - count

    return change


def _one_user(*, is_told: tuple[bool, bool]) -> Change:
    """The first two tokens are one user's; whether `GET /user` says so to each."""

    def change(members: Sequence[Member]) -> None:
        members[1].pays, members[1].user = members[0].pays, members[0].user
        for member, tells in zip(members, is_told, strict=False):
            member.user = member.user if tells else None

    return change


def _user_lost(members: Sequence[Member]) -> None:
    """They are one user's, and a gateway answers the second one's first `GET /user`."""
    _one_user(is_told=(True, True))(members)
    members[1].instead = lambda ask, now: GATEWAY if ask.path == "/user" and len(members[1].heard) == 1 else None


def _untold(members: Sequence[Member]) -> None:
    """Nobody says of any of them who pays."""
    for member in members:
        member.user = None


def _plain(members: Sequence[Member]) -> None:
    """Nothing is wrong."""


def _refusals() -> Iterator[Way]:
    """A member is not served, for a while or for good."""
    yield Way("revoked in the middle", _refused(0, BAD, ALWAYS, ALWAYS))
    yield Way("revoked before the run", _refused(1, BAD, 0.0, ALWAYS))
    yield Way("revoked while nobody sends", _refused(1, BAD, 3.0, ALWAYS))
    yield Way("revoked, and /rate_limit is answered", _refused(0, BAD, ALWAYS, ALWAYS, is_all=False))
    yield Way("suspended", _refused(0, SUSPENDED, ALWAYS, ALWAYS))
    yield Way("told to wait, and back", _refused(0, slower("9"), ALWAYS, 9.0, is_all=False))
    yield Way("told to wait, /rate_limit too", _refused(0, slower("9"), ALWAYS, 9.0))
    yield Way("a limit without a time", _refused(0, slower(), ALWAYS, 30.0, is_all=False))
    yield Way("403 without a reason", _refused(0, said(403, "Forbidden"), ALWAYS, 9.0, is_all=False))
    yield Way("429 without a word", _refused(0, Answer(429), ALWAYS, 9.0, is_all=False))
    yield Way("502", _refused(0, GATEWAY, ALWAYS, 9.0, is_all=False))
    yield Way("502 for ever", _refused(0, GATEWAY, ALWAYS, ALWAYS, is_all=False), idle_s=RETRIED_S)
    yield Way("502 to what is done", _hidden(GATEWAY, lambda ask: True), idle_s=RETRIED_S)
    yield Way("502 to writes that are done", _hidden(GATEWAY, lambda ask: not ask.is_read))
    yield Way("401 to what is done", _hidden(BAD, lambda ask: True))
    done = _hidden(GATEWAY, lambda ask: True)
    yield Way("502 to what is done, unseen by others: 404", _alone(done, NOT_FOUND), idle_s=RETRIED_S, may_fail=True)
    yield Way("502 to what is done, unseen by others: 403", _alone(done, FORBIDDEN), idle_s=RETRIED_S, may_fail=True)
    yield Way("no answer for ever", _mute(0, lambda ask: ask.path not in ("/rate_limit", "/user")), idle_s=60.5)
    yield Way("GET /user is not answered", _mute(1, lambda ask: ask.path == "/user"), idle_s=10.5)
    for wait in ("0", "1", "2"):
        yield Way(f"one at a time, Retry-After: {wait}", _few(wait), may_fail=True, lets_create=False)
    yield Way("404 for what others see", _blind(NOT_FOUND), may_fail=True)
    yield Way("403 for what others see", _blind(FORBIDDEN), may_fail=True)


def _untruths() -> Iterator[Way]:
    """What a member is told of its budget, or of the time, is late, missing, another one's or nonsense."""
    for answers, refused, idle_s in (
        (Answers.FROZEN, 1, 2.0),
        (Answers.LATE, 1, 2.0),
        (Answers.NOT_FOUND, 0, 2.0),
        (Answers.BROKEN, 0, 6.5),
        (Answers.MISSING, 0, 2.0),
        (Answers.HANGS, 0, 10.5),
        (Answers.RESETS, 0, 2.0),
        (Answers.SAME, 1, 2.0),
        (Answers.IDLE, 5, 2.0),
        (Answers.SPENT, 0, 20.0),
        (Answers.NONSENSE, 3, 2.0),
    ):
        for place, which in ((0, "first"), (1, "second")):
            yield Way(f"/rate_limit {answers}, of the {which}", _asked_as(place, answers), refused, idle_s)
    for headers in (Headers.ABSENT, Headers.LATE, Headers.WRONG, Headers.ZERO, Headers.NAMELESS):
        yield Way(f"headers {headers}", _shown_as(headers), refused=headers is Headers.LATE)
    for place, whose in ((0, "the second's to the first"), (1, "the first's to the second")):
        yield Way(f"headers: {whose}", _of_another(place, is_shown=True), refused=1)
        yield Way(f"/rate_limit: {whose}", _of_another(place, is_asked=True), refused=1)
        yield Way(f"both: {whose}", _of_another(place, is_shown=True, is_asked=True), 1, idle_s=20.5)
    yield Way("a Date 30 s ahead", _dated(30.0))
    yield Way("a Date 30 s behind", _dated(-30.0))
    yield Way("a Date an hour ahead", _dated(0.0, 3_600.0), refused=20)
    yield Way("a Date of each", _dated(-7.0, 0.0, 7.0))


def _budgets() -> Iterator[Way]:
    """Budgets are of several sizes, spent, or one for several members."""
    yield Way("windows of other lengths", _windows(20, 8, 13, 17))
    yield Way("other limits", _limits(40, 10, 25, 60))
    yield Way("no limit for the first", _limits(0), refused=1)
    yield Way("no limit for the second", _limits(40, 0), refused=1)
    yield Way("no limit for any", _limits(0, 0, 0, 0), refused=4, stops=2)
    yield Way("a reserve that is all of each", _limits(10, 12, 11, 9), reserve=12, stops=2)
    yield Way("a reserve that is all of the first's", _limits(10), reserve=12)
    yield Way("nearly spent", _spent(3, 2, 1))
    yield Way("the first is spent", _spent(0), refused=1)
    yield Way("all are spent", _spent(0, 0, 0, 0), refused=4, idle_s=13.5)
    yield Way("one user", _one_user(is_told=(True, True)))
    yield Way("one user, told of the first", _one_user(is_told=(True, False)), refused=48)
    yield Way("one user, never told", _one_user(is_told=(False, False)))
    yield Way("one user, told at the second try", _user_lost)
    yield Way("nobody says who pays", _untold, idle_s=7.0)


WAYS = (Way("plain", _plain), *_refusals(), *_untruths(), *_budgets())
