"""Sequences of answers, of which each alone could be right: what a platform, its copies and gateways do one after the
other."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from email.utils import formatdate
from typing import Literal

from tests.hostile.foreign import foreign_answer
from tests.hostile.http import twists
from tests.hostile.http.messages import JSON, Answer, Ask
from tests.hostile.http.turn import BASE_URL
from tests.hostile.wrong import NONE, Course, Guest, Script, Way

Make = Callable[[Guest, Ask, float], Course]
"""What becomes of one request."""

PAGE = b"<html><body>We are back soon</body></html>"
A_PAGE = Answer(404, PAGE, (("content-type", "text/html"),))
USER = Answer(200, b'{"login":"mona","id":1}', (JSON,))
_THING = re.compile(
    r"/repos/.*/contents/.+|/orgs/.*/(?:hooks|configurations)/\d+(?:/config)?|.*/teams/.*/organizations/.+"
)
"""One thing, which is not a list."""


def right(guest: Guest, ask: Ask, now: float) -> Course:
    """As it should be."""
    return Course(guest.platform.answer(ask, now))


def done(status: int, body: bytes = b'{"message":"gateway"}', *headers: tuple[str, str]) -> Make:
    """Done, and answered otherwise."""

    def make(guest: Guest, ask: Ask, now: float) -> Course:
        answer = twists.instead(status, body, *headers)(ask, guest.platform.answer(ask, now))
        assert isinstance(answer, Answer), "it has a form"
        return Course(answer)

    return make


def undone(status: int, body: bytes = b'{"message":"gateway"}', *headers: tuple[str, str]) -> Make:
    """Not done, and answered by somebody else."""

    def make(guest: Guest, ask: Ask, now: float) -> Course:
        answer = twists.instead(status, body, *headers)(ask, guest.platform.scratch().answer(ask, now))
        assert isinstance(answer, Answer), "it has a form"
        return Course(answer)

    return make


def lost(guest: Guest, ask: Ask, now: float) -> Course:
    """Done, and the connection ends."""
    return Course(guest.platform.answer(ask, now), "close")


def never_came(guest: Guest, ask: Ask, now: float) -> Course:
    """Not done, and the connection ends."""
    return Course(guest.platform.scratch().answer(ask, now), "close")


def in_part(status: int) -> Make:
    """All but the last field of the body is done, and the answer says that nothing is."""

    def make(guest: Guest, ask: Ask, now: float) -> Course:
        fields = [*ask.json().items()]
        part = dict(fields[:-1] or fields)
        guest.platform.act(replace(ask, body=json.dumps(part).encode()), now)
        return undone(status)(guest, ask, now)

    return make


def lagging(seconds: float) -> Make:
    """By a copy that is so far behind."""

    def make(guest: Guest, ask: Ask, now: float) -> Course:
        before, guest.platform.lag_s = guest.platform.lag_s, seconds
        try:
            return right(guest, ask, now)
        finally:
            guest.platform.lag_s = before

    return make


def foreign(guest: Guest, ask: Ask, now: float) -> Course:
    """What somebody else asked for."""
    answer = guest.platform.answer(ask, now)
    return Course(foreign_answer(guest.platform, ask, now) if answer.status < 300 else answer)


def shifted(guest: Guest, ask: Ask, now: float) -> Course:
    """Done, and answered with what the request before was answered: a connection that is one answer behind."""
    answer = guest.platform.answer(ask, now)
    before = guest.notes.get("before", NONE)
    guest.notes["before"] = answer
    return Course(answer if before is NONE else before)


def repeated(guest: Guest, ask: Ask, now: float) -> Course:
    """Done, and answered with the newest answer that went out."""
    answer = guest.platform.answer(ask, now)
    before = next((each for each in reversed(guest.answered) if each is not NONE), answer)
    return Course(before)


def in_pages(moved: Literal["twice", "missed"]) -> Make:
    """Lists in two pages, between which the last entry moves: it is on both, or at first on none of them."""

    def make(guest: Guest, ask: Ask, now: float) -> Course:
        whole = replace(ask, query={name: values for name, values in ask.query.items() if name != "page"})
        answer = guest.platform.answer(whole, now)
        entries = json.loads(answer.body) if ask.is_read and answer.status == 200 and JSON in answer.headers else None
        if not isinstance(entries, list) or not entries:
            return Course(answer)
        if ask.one("page") == "2":
            number = guest.notes["readings"] = guest.notes.get("readings", 0) + 1
            shown = [] if moved == "missed" and number == 1 else entries[-1:]
            return Course(replace(answer, body=json.dumps(shown).encode()))
        shown = entries if moved == "twice" else entries[:-1]
        following = ("link", f'<{BASE_URL}{ask.path}?page=2>; rel="next"')
        return Course(replace(answer, body=json.dumps(shown).encode(), headers=(*answer.headers, following)))

    return make


def blocked(guest: Guest, ask: Ask, now: float) -> Course:
    """What is asked for by its name or number is a page of a front end; lists, and all else, are as they should be."""
    answer = guest.platform.answer(ask, now)
    is_thing = ask.is_read and _THING.fullmatch(ask.path) is not None
    return Course(A_PAGE if is_thing else answer)


def bare(absent: Answer) -> Make:
    """A front end answers so for whatever the platform has not. Whose a token is, of which the specification has no
    word, the platform tells as every other one does."""

    def make(guest: Guest, ask: Ask, now: float) -> Course:
        answer = USER if ask.path == "/user" else guest.platform.answer(ask, now)
        return Course(absent if answer.status == 404 else answer)

    return make


def one_by_one(writes: tuple[Make, ...] = (), reads: tuple[Make, ...] = (), rest: Make = right) -> Script:
    """The first writes meet these, and the first reads after the first write those."""

    def script(guest: Guest, ask: Ask, now: float, number: int) -> Course:
        kind = "read" if ask.is_read else "write"
        if ask.is_read and "write" not in guest.notes:
            return right(guest, ask, now)
        place = guest.notes.get(kind, 0)
        guest.notes[kind] = place + 1
        makes = reads if ask.is_read else writes
        return (makes[place] if place < len(makes) else rest)(guest, ask, now)

    return script


def from_the_first_write(make: Make, lasts_s: float) -> Script:
    """Right at first; from the first write on all requests meet this, for so long (seconds); then right again."""

    def script(guest: Guest, ask: Ask, now: float, number: int) -> Course:
        if ask.is_read and "began" not in guest.notes:
            return right(guest, ask, now)
        began = guest.notes.setdefault("began", now)
        return (make if now < began + lasts_s else right)(guest, ask, now)

    return script


def in_turn(*makes: Make) -> Script:
    """All requests, from the first on, in this order; then as it should be."""
    return lambda guest, ask, now, number: (makes[number - 1] if number <= len(makes) else right)(guest, ask, now)


def for_ever(*makes: Make) -> Script:
    """These again and again."""
    return lambda guest, ask, now, number: makes[(number - 1) % len(makes)](guest, ask, now)


def of_writes(*makes: Make) -> Script:
    """Writes, in this order."""
    return one_by_one(writes=makes)


def dated(moment: Callable[[float, int], float]) -> Script:
    """All answers, with a `Date` of its own."""

    def script(guest: Guest, ask: Ask, now: float, number: int) -> Course:
        answer = guest.platform.answer(ask, now)
        kept = tuple(header for header in answer.headers if header[0] != "date")
        date = formatdate(max(0.0, moment(now, number)), usegmt=True)
        return Course(replace(answer, headers=(*kept, ("date", date))))

    return script


SEEN_FIRST: dict[str, Make] = {
    "404": done(404, b'{"message":"Not Found"}'),
    "404 page": done(404, PAGE),
    "403 with a reason": done(403, b'{"message":"Must have admin rights."}'),
    "410": done(410, b'{"message":"Gone"}'),
    "500": done(500),
    "429": done(429, b'{"message":"slow down"}'),
    "304": done(304, b""),
    "an empty list": done(200, b"[]"),
    "a page": done(200, PAGE),
    "another's": foreign,
    "a copy 5 s behind": lagging(5.0),
    "a copy 12 s behind": lagging(12.0),
    "nothing": lost,
}
"""What the first look after a lost answer may meet."""
ANSWERS: dict[str, Make] = {
    "lost": lost,
    "502": done(502),
    "200 {}": done(200, b"{}"),
}
SECOND: dict[str, Make] = {
    "404": done(404, b'{"message":"Not Found"}'),
    "409": done(409, b'{"message":"Conflict"}'),
    "422": done(422, b'{"message":"Validation Failed"}'),
    "422 exists already": done(422, b'{"message":"Validation Failed","errors":[{"code":"already_exists"}]}'),
    "403 forbidden": done(403, b'{"message":"Forbidden"}'),
    "200 {}": done(200, b"{}"),
    "502": done(502),
    "204": done(204, b""),
}
"""What a write may meet that is sent again."""


def _looks() -> Iterator[Way]:
    for name, seen in SEEN_FIRST.items():
        for how, answer in ANSWERS.items():
            yield _scripted(f"looked: {how}, then {name}", one_by_one((answer,), (seen,)))
        yield _scripted(f"looked: never came, then {name}", one_by_one((never_came,), (seen,)))
    behind, fresh = lagging(5.0), right
    yield _scripted("copies: lost, then one behind and one not", one_by_one((lost,), (behind, fresh) * 20))
    yield _scripted("copies: lost, then one not behind and one that is", one_by_one((lost,), (fresh, behind) * 20))
    yield _scripted("copies: never came, then one behind", one_by_one((never_came,), (behind, fresh) * 20))
    yield _scripted("copies: all is well, then 10 s behind", one_by_one((right,), rest=lagging(10.0)))
    yield _scripted("copies: 502, then 10 s behind", one_by_one((done(502),), (lagging(10.0),) * 30))


def _second() -> Iterator[Way]:
    for name, then in SECOND.items():
        yield _scripted(f"second: never came, then {name}, done", of_writes(never_came, then), is_denied=name[0] == "4")
        yield _scripted(f"second: 502 not done, then {name}, done", of_writes(undone(502), then), name[0] == "4")
    yield _scripted("second: 502, 503, 504 and right", of_writes(undone(502), undone(503), undone(504)))
    yield _scripted("second: 503 done, then 503 to five looks", one_by_one((done(503),), (undone(503),) * 5))
    waits = ("retry-after", "60")
    yield _scripted("second: maintenance of a minute to all, then right", in_turn(undone(503, PAGE, waits)), well=True)
    yield _scripted("second: maintenance of a minute to a write", of_writes(done(503, PAGE, waits)))


def _denied() -> Iterator[Way]:
    for name, seen in SEEN_FIRST.items():
        for status in (400, 404, 409, 422):
            denied = done(status, b'{"message":"No"}')
            yield _scripted(f"denied: {status} after, then {name}", one_by_one((denied,), (seen,)), is_denied=True)


def _parts() -> Iterator[Way]:
    for status in (400, 409, 422):
        yield _scripted(f"part: {status}, and all but the last field done", of_writes(in_part(status)), True)


def _desync() -> Iterator[Way]:
    yield _scripted("desync: every answer is the one before", for_ever(shifted))
    yield _scripted("desync: the write gets the answer before it", of_writes(repeated))
    yield _scripted("desync: the second request gets the first answer", in_turn(right, repeated))
    yield _scripted("desync: the third request gets the second answer", in_turn(right, right, repeated))
    yield _scripted("desync: each second request gets the answer before it", for_ever(right, repeated))
    yield _scripted("desync: the look after a lost write gets the answer before", one_by_one((lost,), (repeated,)))
    for place in (2, 3, 5, 8):
        yield Way(f"desync: each connection is one answer behind from its answer {place} on", repeats_at=place)


def _pages() -> Iterator[Way]:
    yield _scripted("pages: the last entry twice", for_ever(in_pages("twice")))
    missed = in_pages("missed")
    yield replace(_scripted("pages: an entry is missed", for_ever(missed)), is_for_writes=True)
    yield _scripted("pages: never came, then an entry is missed", one_by_one((never_came,), (missed,) * 40))
    yield _scripted("pages: lost, then an entry is missed", one_by_one((lost,), (missed,) * 40))


def _clocks() -> Iterator[Way]:
    yield _scripted("clock: back by an hour in mid-run", dated(lambda now, n: now - 3_600.0 * (n > 2)), well=True)
    yield _scripted("clock: ahead by an hour in mid-run", dated(lambda now, n: now + 3_600.0 * (n > 2)), well=True)
    yield _scripted("clock: of two nodes", dated(lambda now, n: now + 300.0 * (n % 2)), well=True)
    yield _scripted("clock: 1970 every fourth time", dated(lambda now, n: now * (n % 4 > 0)), well=True)
    yield _scripted("clock: 9999 always", dated(lambda now, n: 253_402_300_799.0), well=True)
    yield _scripted("clock: 1970 once", dated(lambda now, n: 0.0 if n == 2 else now))
    yield _scripted("clock: 1970 always", dated(lambda now, n: 0.0))
    yield _scripted("clock: 2100 always", dated(lambda now, n: 4_102_444_800.0))
    yield _scripted("clock: to and fro by a minute", dated(lambda now, n: now + 60.0 * (-1) ** n), well=True)


def _front_ends() -> Iterator[Way]:
    yield _scripted("front end: its own page for what is not there", for_ever(bare(A_PAGE)), well=True)
    yield _scripted("front end: its own page for each thing", for_ever(blocked))
    for name, answer in {"never came": never_came, "lost": lost, "404 not done": undone(404)}.items():
        pages = one_by_one((answer,), rest=blocked)
        yield _scripted(f"front end: {name}, then its own page for each thing", pages)


FOR_A_WHILE: dict[str, Make] = {
    "an empty list": done(200, b"[]"),
    "404 page": done(404, PAGE),
    "403 with a reason": done(403, b'{"message":"Must have admin rights."}'),
    "422": done(422, b'{"message":"Validation Failed"}'),
    "a page": done(200, PAGE),
    "204": done(204, b""),
    "502": done(502),
}
WHILE_S = 40.0
"""Longer than anything is waited for before it is believed not to be there (seconds)."""


def _for_a_while() -> Iterator[Way]:
    for name, make in FOR_A_WHILE.items():
        script = from_the_first_write(make, WHILE_S)
        way = _scripted(f"for a while: all is done and answered {name}", script, is_denied=name[0] == "4")
        yield replace(way, is_lasting=name[0] == "4")
    for name, body in {"404": b'{"message":"Not Found"}', "200": b"[]", "404 page": PAGE}.items():
        script = from_the_first_write(undone(int(name[:3]), body), WHILE_S)
        way = _scripted(f"for a while: nothing is done, and all is answered {name}", script)
        yield replace(way, shows_none=body == b"[]")


def _half_wrong() -> Iterator[Way]:
    absent = undone(404, b'{"message":"Not Found"}')
    yield _scripted("half wrong: every second answer is a 404", for_ever(right, absent))
    yield _scripted("half wrong: the first and every second one is a 404", for_ever(absent, right))
    yield _scripted("half wrong: every third answer is a 404", for_ever(right, right, absent))


def _scripted(name: str, script: Script, is_denied: bool = False, well: bool = False) -> Way:
    return Way(name, "scripted", None, "both", script=script, is_denied=is_denied, is_harmless=well)


def _statuses() -> Iterator[Way]:
    for status in (206, 207, 226, 300, 301, 302, 305, 307, 308, 406, 418, 431, 505, 507, 508, 511, 529, 598):
        to = (("location", "https://git.example.test/api/v3/"),) if 300 < status < 310 else ()
        yield Way(f"odd: {status} to a read", "status", on="read", status=status, headers=to)
        denied = 400 <= status < 500
        yield Way(f"odd: {status} to a write, done", "status", status=status, headers=to, is_denied=denied)
        yield Way(f"odd: {status} to a write, not done", "status", status=status, headers=to, has_effect=False)


def ways() -> Iterator[Way]:
    """All of them."""
    yield from (
        *_looks(),
        *_second(),
        *_denied(),
        *_parts(),
        *_desync(),
        *_pages(),
        *_clocks(),
        *_front_ends(),
        *_half_wrong(),
        *_for_a_while(),
        *_statuses(),
    )
