"""What a 404 without the platform's message proves, and how a run learns what its platform answers."""

import math
import random

import anyio
import pytest

from bulk.execute.requests.absences import PATIENCE_S, PROBE_EVERY_S, PROBES, SILENT_S, TRIES, Absences
from bulk.execute.requests.context import Tried
from bulk.model import Effect, Reply, Request
from bulk.platform.classification import VerdictKind, classify
from tests.virtual_time import run_virtual

LOOK = Request(method="GET", path="/x", accept=frozenset((200, 404)))
DELETE = Request(method="DELETE", path="/x", accept=frozenset((204, 404)), effect=Effect.COMPARE_AND_SWAP)
GET = Request(method="GET", path="/x")
OWN = {"message": "Not Found"}


def answered(request: Request, status: int, body: object) -> Tried:
    """What came of a send."""
    reply = Reply(status=status, headers={}, body=body)
    return Tried(reply, classify(request, reply, "service"))


class Learning:
    """An `Absences` whose probes are answered with these bodies; None: a page of a front end.

    Attributes:
        asked: for what certainly is not there. controls: how often it was asked whose the token is.
    """

    def __init__(self) -> None:
        self.absences, self.asked, self.controls, self.now = Absences(random.Random(1)), list[str](), 0, 100.0
        self.good = 0

    async def probed(
        self,
        body: object,
        *,
        status: int = 404,
        good: int | None = None,
        is_there: bool = False,
        after_s: float = PROBE_EVERY_S,
    ) -> None:
        """Let one item ask, where so many good answers came to others, and whose the token is `is_there`."""

        async def ask(request: Request) -> Tried:
            if request.path == "/user":
                self.controls += 1
                self.good += is_there
                return answered(request, 200, {"login": "me"}) if is_there else answered(request, 404, None)
            self.asked.append(request.path)
            tried = answered(request, status, body)
            assert tried.reply is not None
            assert tried.verdict is not None
            self.absences.told(request, tried.verdict, tried.reply)
            return tried

        self.now += after_s
        self.good = self.good if good is None else good
        await self.absences.learn(ask, lambda: self.good, lambda: self.now)

    def counts(self, request: Request = LOOK, body: object = None) -> bool:
        """Whether a 404 after all tries is one that the operation sees."""
        return self.absences.believed(request, answered(request, 404, body)).kind is VerdictKind.ACCEPTED


@pytest.mark.parametrize("body", [None, {}, [], {"message": ""}, {"message": 1}, {"error": "Not Found"}])
def test_a_404_is_the_platforms_only_with_its_message(body: object) -> None:
    """A read that wants to see a 404 is not shown one of a front end; after a write the operation looks anyway."""
    assert answered(LOOK, 404, body).is_bare
    assert answered(DELETE, 404, body).kind is VerdictKind.ACCEPTED
    assert answered(LOOK, 404, OWN).kind is VerdictKind.ACCEPTED


def test_pages_count_where_probes_bring_pages_while_others_are_served() -> None:
    """After three probes with good answers in between, two pages are the last word; before, they are not."""

    async def main() -> None:
        learning = Learning()
        for number in range(PROBES):
            assert not learning.absences.is_enough(TRIES)
            assert not learning.counts()
            await learning.probed(None, good=number)
        assert learning.counts()
        assert learning.absences.is_enough(TRIES)
        assert not learning.absences.is_enough(TRIES - 1)
        assert not learning.counts(GET)  # the read does not want to see one
        await learning.probed(None, good=9)
        assert len(set(learning.asked)) == PROBES  # nothing is asked any more, and no name was asked for twice
        assert learning.controls == 1  # there was no good answer before the first one

    run_virtual(main)


def test_an_outage_is_not_taken_for_the_way_of_a_platform() -> None:
    """Where nothing else is served, or not each probe brings a page, waits stay long."""

    async def main() -> None:
        outage, half = Learning(), Learning()
        for number in range(9):
            await outage.probed(None)
            await half.probed(None, status=502 if number % 3 == 2 else 404, good=number)
        assert outage.counts()  # an item that has taken all its tries may go on, and looks for itself
        assert not outage.absences.is_enough(TRIES)
        assert not half.counts()
        assert not half.absences.is_enough(TRIES)

    run_virtual(main)


def test_once_the_platform_has_answered_itself_pages_prove_nothing() -> None:
    """Its own 404, to a probe or to anything else, ends all belief in pages, whatever was learned before."""

    async def main() -> None:
        for is_early in (True, False):
            learning = Learning()
            if is_early:
                await learning.probed(OWN)
            for number in range(PROBES):
                await learning.probed(None, good=number)
            assert learning.counts() is not is_early
            own = answered(LOOK, 404, OWN)
            assert own.verdict is not None
            assert own.reply is not None
            assert learning.absences.told(LOOK, own.verdict, own.reply) is own.verdict
            assert not learning.counts()
            assert len(learning.asked) == (1 if is_early else PROBES)

    run_virtual(main)


def test_probes_are_seldom() -> None:
    """However many items meet pages, there is one probe in a second."""

    async def main() -> None:
        learning = Learning()
        for _ in range(9):
            await learning.probed(None, after_s=0.25)
        assert len(learning.asked) == 3

    run_virtual(main)


def test_where_nothing_else_is_served_whose_the_token_is_shows_that_the_platform_is_there() -> None:
    """Then pages are no sign of an outage, from the first probe on, and three probes are enough."""

    async def main() -> None:
        learning, page = Learning(), answered(LOOK, 404, None)
        assert page.verdict is not None
        assert page.reply is not None
        absences = learning.absences
        assert absences.told(LOOK, page.verdict, page.reply).kind is VerdictKind.ASTRAY
        for number in range(PROBES):
            assert not absences.is_enough(TRIES)
            await learning.probed(None, is_there=True)
            kind = absences.told(LOOK, page.verdict, page.reply).kind
            assert kind is (VerdictKind.BAD_RESPONSE if number < PROBES - 1 else VerdictKind.REFUSED)
        assert absences.is_enough(TRIES)
        assert learning.controls == PROBES
        lost = Learning()
        await lost.probed(None, is_there=True)
        await lost.probed(None, is_there=False)  # the way to the platform is lost
        assert lost.absences.told(LOOK, page.verdict, page.reply) is page.verdict

    run_virtual(main)


def test_a_401_to_a_question_of_our_own_says_nothing_of_the_credential() -> None:
    """One to an item does, whatever it asks for."""
    absences = Absences(random.Random(1))
    for request, kind in ((absences.probe(), VerdictKind.BAD_RESPONSE), (GET, VerdictKind.UNAUTHORIZED)):
        refused = answered(request, 401, {"message": "Requires authentication"})
        assert refused.verdict is not None
        assert refused.reply is not None
        assert absences.told(request, refused.verdict, refused.reply).kind is kind


def test_a_question_that_hangs_is_given_up_and_is_the_last_one_for_a_while() -> None:
    """That it may not leave yet is not counted; once it has left it holds up one item, for a short time."""

    async def main() -> None:
        absences, asked = Absences(random.Random(1)), 0

        async def hang() -> Tried:
            nonlocal asked
            asked += 1
            await anyio.sleep(math.inf)
            raise AssertionError("it never ends")

        async def wait() -> None:
            await anyio.sleep(2.0 * PATIENCE_S)

        began = anyio.current_time()
        for _ in range(9):
            assert (await absences.asked(wait, hang, anyio.current_time)).reply is None
        assert (asked, round(anyio.current_time() - began, 3)) == (1, 3.0 * PATIENCE_S)
        await anyio.sleep(SILENT_S)
        await absences.asked(wait, hang, anyio.current_time)
        assert asked == 2

    run_virtual(main)
