"""The ways in which an App, its installations or what answers for the platform can be wrong, one at a time."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.hostile.apps.fleet import HALF, MUTE, OWNERS, Fleet, Instead, Place, Twist, with_body
from tests.hostile.http.messages import Answer, Ask, refused, shown
from tests.hostile.http.turn import stamp

OTHERS = OWNERS[1:]
ACME, ORBIT = OWNERS[:2]
Change = Callable[[Fleet], None]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to be wrong.

    Attributes:
        exits: codes with which the first run may end. spared: the owners all of whose items are done by then.
        codes: errors with which items may end for good. refused: requests beyond budgets that can't be avoided.
        took_s: the first run ends within so long. mints: so many tokens of one installation are sane.
        permissions: what the credential says. raises: the first run never begins, and its error says this.
        is_for_writes: nothing is wrong for who only reads.
        limit, window_s: of each installation's budget (count, seconds).
    """

    name: str
    change: Change = lambda fleet: None
    exits: tuple[int, ...] = (0,)
    spared: tuple[str, ...] = OWNERS
    codes: frozenset[str] = frozenset()
    refused: int = 0
    took_s: float = 90.0
    mints: int = 3
    permissions: str = "least"
    raises: str = ""
    is_for_writes: bool = False
    limit: int = 30
    window_s: int = 20


def minted(twist: Twist, *, login: str = ACME, times: float = 1) -> Change:
    """The first so many tokens of one installation are answered otherwise."""

    def change(fleet: Fleet) -> None:
        fleet.on_mint = lambda fleet, place, answer, number: (
            twist(fleet, place, answer, number) if place.login == login and number <= times else answer
        )

    return change


def said(answer: Answer) -> Twist:
    """This comes in the place of any right answer."""
    return lambda fleet, place, right, number: answer


def with_status(status: int) -> Twist:
    """The right answer has another status."""
    return lambda fleet, place, right, number: replace(right, status=status)


def changed(**values: object) -> Twist:
    """The right answer has other values."""
    return lambda fleet, place, right, number: with_body(right, **values)


def at(*moments: tuple[float, Change]) -> Change:
    """These things happen when so many seconds are over."""
    return lambda fleet: fleet.before.extend(moments)


def instead(rule: Instead) -> Change:
    """What is answered in place of the platform."""

    def change(fleet: Fleet) -> None:
        fleet.instead = rule

    return change


def place_of(fleet: Fleet, login: str = ACME) -> Place:
    """One installation."""
    return next(place for place in fleet.places if place.login == login)


def with_place(**changed: object) -> Change:
    """One installation is another one from now on."""

    def change(fleet: Fleet) -> None:
        for name, value in changed.items():
            setattr(place_of(fleet), name, value)

    return change


def page(status: int, body: bytes = b"<html>Welcome</html>") -> Answer:
    """What a gateway says in the place of the platform."""
    return Answer(status, body, (("content-type", "text/html"),))


BODIES = (b"", b"{}", b"[]", b"null", b'""', b"7", b'{"message":"x"}', b'{"status":"ok"}', b'{"token":', b"<html>")
LIMITS = {
    "secondary": refused(403, "You have exceeded a secondary rate limit. Please wait a few minutes."),
    "429": refused(429, "Too many requests"),
    "429 wordless": page(429),
    "429 Retry-After": refused(429, "Too many requests").with_headers(("retry-after", "7")),
    "503 Retry-After": page(503).with_headers(("retry-after", "7")),
}


def stuck(name: str, change: Change, **more: Any) -> Way:
    """The items of one installation stay to do."""
    return Way(name, change, exits=(4,), spared=OTHERS, **more)


def for_hours(name: str, change: Change = lambda fleet: None, mints: int = 9) -> Way:
    """The run takes longer than a token lasts."""
    return Way(name, change, limit=12, window_s=1_200, took_s=9_000.0, mints=mints)


def _answers() -> Iterator[Way]:
    for status in (200, 201, 202):
        for body in BODIES:
            name = f"mint {status} {body.decode() or 'nothing'}"
            answer = Answer(status, body, (("content-type", "application/json"),))
            yield Way(f"{name}, once", minted(said(answer)))
        yield stuck(f"mint {status} nonsense, always", minted(said(page(status)), times=math.inf), mints=9)
        yield Way(
            f"mint {status} with a token",
            minted(with_status(status), times=math.inf),
        )
    for status in (204, 302, 400, 401, 403, 404, 409, 422, 429, 500, 502, 503, 520):
        yield Way(f"mint {status} wordless, once", minted(said(page(status))))
    for status in (403, 422):
        yield stuck(f"mint {status} with a word, once", minted(said(refused(status, "No."))))
    yield Way("mint 404 with a word, once", minted(said(refused(404, "Not Found"))))
    yield Way("mint 404 with a word, three times", minted(said(refused(404, "Not Found")), times=3), mints=4)
    yield Way("mint 401 with a word, once", minted(said(refused(401, "Bad credentials"))))
    yield Way("mint 502 for 60 s", minted(said(page(502)), times=9), mints=12, took_s=200.0)
    yield stuck("mint 502 for ever", minted(said(page(502)), times=math.inf), mints=99, took_s=1_200.0)
    yield Way("mint mute, once", minted(said(MUTE)), took_s=200.0)
    yield Way("mint half, once", minted(said(replace(HALF, body=b'{"token":"t9'))), took_s=200.0)
    for name, limit in LIMITS.items():
        yield Way(f"mint {name}, twice", minted(said(limit), times=2), took_s=400.0)


def _ends() -> Iterator[Way]:
    yield for_hours("hours")
    ends: dict[str, object] = {
        "missing": None, "past": "2001-01-01T00:00:00Z", "far": "2999-01-01T00:00:00Z", "nonsense": "soon", "": "",
        "a number": 1_900_000_000, "a list": [], "year 9999": "9999-12-31T23:59:59Z", "year 1": "0001-01-01T00:00:00",
        "year 9999 of another zone": "9999-12-31T23:59:59-14:00", "year 1 of another zone": "0001-01-01T00:00:00+14:00",
        "a date": "2030-01-01", "a week": "2030-W01-1", "an object": {"a": 1},
    }  # fmt: skip
    for name, end in ends.items():
        yield for_hours(f"expires_at {name}", minted(changed(expires_at=end), times=math.inf))

    def without_zone(fleet: Fleet, place: Place, right: Answer, number: int) -> Answer:
        return with_body(right, expires_at=json.loads(right.body)["expires_at"].removesuffix("Z"))

    def shortly(fleet: Fleet, place: Place, right: Answer, number: int) -> Answer:
        return with_body(right, expires_at=stamp(fleet.wall() + fleet.skew_s + 8))

    def early(fleet: Fleet, place: Place, right: Answer, number: int) -> Answer:
        grant = fleet.tokens[json.loads(right.body)["token"]]
        grant.ends_at -= 3_000
        return right

    yield for_hours("expires_at without a zone", minted(without_zone, times=math.inf))
    yield for_hours("expires_at in 8 s", minted(shortly, times=math.inf), mints=2_000)
    yield for_hours("a token ends long before it says", minted(early, times=math.inf), mints=20)


def _tokens() -> Iterator[Way]:
    def newest(fleet: Fleet, login: str) -> str | None:
        return next((token for token, grant in reversed(fleet.tokens.items()) if grant.place.login == login), None)

    def of_orbit(fleet: Fleet, place: Place, right: Answer, number: int) -> Answer:
        return with_body(fleet.minted(place_of(fleet, ORBIT)))

    def that_orbit_has(fleet: Fleet, place: Place, right: Answer, number: int) -> Answer:
        token = newest(fleet, ORBIT)
        return right if token is None else with_body(right, token=token)

    def the_same(fleet: Fleet, place: Place, right: Answer, number: int) -> Answer:
        token = next(token for token, grant in fleet.tokens.items() if grant.place is place)
        return with_body(right, token=token)

    def unknown(fleet: Fleet, place: Place, right: Answer, number: int) -> Answer:
        return with_body(right, token=f"t{number}.never-given")

    def revoking(fleet: Fleet) -> None:
        fleet.revoke(*OWNERS)

    yield Way(  # nobody can know whose a new token is: orbit pays for both, and acme's repositories are not found
        "mint gives orbit's new token, once",
        minted(of_orbit),
        exits=(1,),
        spared=OTHERS,
        codes=frozenset(("not_found",)),
        refused=20,
    )
    yield Way("mint gives nova the token that orbit has, once", minted(that_orbit_has, login=OWNERS[2]))
    yield Way(
        "mint gives nova the token that orbit has, always",
        minted(that_orbit_has, login=OWNERS[2], times=math.inf),
        exits=(4,),
        spared=OWNERS[:2],
        mints=9,
    )
    yield Way("mint gives an unknown token, once", minted(unknown))
    yield stuck("mint gives an unknown token, always", minted(unknown, times=math.inf), mints=9)
    yield Way("revoked at 1 s", at((1.0, revoking)))
    yield Way("revoked five times", at(*((2.0 + 5 * number, revoking) for number in range(5))), mints=9)
    yield Way("acme's revoked at 1 s, and given again, once", _all(at((1.0, revoking)), _given_again(the_same, 2)))
    yield stuck(
        "acme's revoked at 1 s, and given again, always",
        _all(at((1.0, revoking)), _given_again(the_same, math.inf)),
        mints=9,
    )


def _given_again(twist: Twist, last: float) -> Change:
    def change(fleet: Fleet) -> None:
        fleet.on_mint = lambda fleet, place, right, number: (
            twist(fleet, place, right, number) if place.login == ACME and 1 < number <= last else right
        )

    return change


def _all(*changes: Change) -> Change:
    def change(fleet: Fleet) -> None:
        for each in changes:
            each(fleet)

    return change


def _places() -> Iterator[Way]:
    forbidden = frozenset(("forbidden",))
    renumbered = with_place(id=99)

    def revoked(fleet: Fleet) -> None:
        fleet.revoke(ACME)

    def reinstalled(fleet: Fleet) -> None:
        renumbered(fleet)
        revoked(fleet)

    yield stuck("suspended", with_place(is_suspended=True))
    yield stuck("suspended at 1 s", at((1.0, with_place(is_suspended=True))))
    yield stuck(
        "suspended at 1 s, back at 11 s",
        at((1.0, with_place(is_suspended=True)), (11.0, with_place(is_suspended=False))),
    )
    yield Way("removed", with_place(is_removed=True), exits=(1,), spared=OTHERS, codes=forbidden)
    # what was begun stays to do (3)
    yield Way("removed at 1 s", at((1.0, with_place(is_removed=True))), exits=(1, 3), spared=OTHERS, codes=forbidden)
    yield Way("installed anew at 1 s", at((1.0, reinstalled)), took_s=200.0)
    yield Way(
        "reads only",
        with_place(permissions={"metadata": "read", "contents": "read"}),
        permissions="all",
        is_for_writes=True,
        exits=(1,),
        spared=OTHERS,
        codes=forbidden,
    )
    yield stuck(
        "reads only, least", with_place(permissions={"metadata": "read", "contents": "read"}), is_for_writes=True
    )
    yield Way("selected", with_place(repositories={"r1"}), exits=(1,), spared=OTHERS, codes=forbidden)
    yield Way(
        "selected at 70 s",
        at((70.0, with_place(repositories={"r1"}))),
        exits=(1,),
        spared=OTHERS,
        codes=forbidden,
        window_s=80,
        took_s=300.0,
    )

    def spend(fleet: Fleet) -> None:
        for _ in range(30):
            place_of(fleet).pays.charge(fleet.began)

    yield Way("acme's budget is spent", spend)


def _clocks() -> Iterator[Way]:
    def by(skew_s: float, date_s: float = 0.0) -> Change:
        def change(fleet: Fleet) -> None:
            fleet.skew_s, fleet.date_s = skew_s, date_s

        return change

    for skew_s in (-86_400.0, -3_600.0, -300.0, 300.0, 3_600.0, 86_400.0):
        yield Way(f"clock {skew_s:+.0f} s", by(skew_s))
        # ends are not what Date says: a window costs some refused requests, or a pause, as with any token
        yield Way(f"Date {skew_s:+.0f} s", by(0.0, skew_s), refused=30, took_s=900.0)
    yield Way("clock jumps by +3600 s at 2 s", at((2.0, by(3_600.0))))
    yield Way("clock jumps by -3600 s at 2 s", at((2.0, by(-3_600.0))), took_s=4_000.0)  # so long lasts the window
    yield Way("clock +3600 s, Date hides it", by(3_600.0, -3_600.0), raises="Set this machine's clock")


def _lists() -> Iterator[Way]:
    def listed(answer: Callable[[Fleet], Answer], times: int = 1) -> Change:
        left = [times]

        def rule(fleet: Fleet, ask: Ask, now: float) -> Answer | None:
            if ask.path != "/app/installations" or left[0] <= 0:
                return None
            left[0] -= 1
            return answer(fleet)

        return instead(rule)

    def entries(fleet: Fleet) -> list[dict[str, object]]:
        return [
            {"id": place.id, "account": {"login": place.login}, "permissions": place.permissions}
            for place in fleet.places
        ]

    def of_another(fleet: Fleet) -> Answer:
        first, second, *rest = entries(fleet)
        return shown(200, [{**first, "id": second["id"]}, second, *rest])

    for status in (200, 201, 202, 404, 500):
        for body in (b"{}", b"null", b"[", b"<html>"):
            yield Way(f"list {status} {body.decode()}, once", listed(lambda _, s=status, b=body: Answer(s, b)))  # type: ignore[misc]
    yield Way("list is empty, once", listed(lambda fleet: shown(200, [])))
    yield Way("list lacks acme", listed(lambda fleet: shown(200, entries(fleet)[1:])))
    yield Way("list has no objects", listed(lambda fleet: shown(200, [1, None, "x", [], {"id": 11}])))
    for name, number in {
        "a text": "11",
        "true": True,
        "a float": 11.0,
        "huge": 2**70,
        "negative": -4,
        "null": None,
    }.items():
        yield Way(
            f"list: acme's id is {name}",
            listed(lambda fleet, n=number: shown(200, [{**entries(fleet)[0], "id": n}, *entries(fleet)[1:]])),  # type: ignore[misc]
        )
    yield Way("list: acme's id is orbit's", listed(of_another))


def _words() -> Iterator[Way]:
    def echo(fleet: Fleet, ask: Ask, now: float) -> Answer | None:
        if ask.path.startswith("/repos/acme/r1/"):
            return refused(404 if ask.is_read else 422, f"not for {ask.headers.get('authorization')}")
        return None

    def gateway(status: int, part: str, every: int) -> Instead:
        count = [0]

        def rule(fleet: Fleet, ask: Ask, now: float) -> Answer | None:
            if part not in ask.path:
                return None
            count[0] += 1
            return page(status) if count[0] % every == 0 else None

        return rule

    yield Way(
        "echoes what logs in", instead(echo), exits=(1,), spared=OTHERS,
        codes=frozenset(("not_found", "validation_failed")), took_s=200.0,
    )  # fmt: skip
    yield Way("401 of a gateway, each 7th", instead(gateway(401, "/repos/acme", 7)), mints=40)
    yield Way("403 of a gateway, each 7th", instead(gateway(403, "/repos/acme", 7)))
    yield stuck(
        "mint 422 echoes",
        minted(lambda fleet, place, right, number: refused(422, json.loads(right.body)["token"])),
    )


WAYS = (Way("plain"), *_answers(), *_ends(), *_tokens(), *_places(), *_clocks(), *_lists(), *_words())
