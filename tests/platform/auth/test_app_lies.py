"""One lie about an installation or its token: it is not believed where another word of the platform says otherwise."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from bulk.model import Reply, Request
from bulk.platform.auth.app import LIST, TRIES
from bulk.platform.auth.installations import LIST_AGAIN_S, InstallationSource, path_of
from bulk.platform.auth.secrets import Secret
from tests.platform.auth.test_app_answers import ACME, TOKEN, Platform, answer
from tests.simulation.world import simulate

ORBIT: dict[str, Any] = {"id": 8, "account": {"login": "orbit"}}


class Told(Platform):
    """Two installations, of which `say` tells something else: the number counts the requests for one path."""

    def __init__(self, tmp_path: Path, say: Callable[[Request, int], Reply | None]) -> None:
        super().__init__(tmp_path, "", [])
        self._say, self.heard, self.places = say, list[str](), {"acme": 7, "orbit": 8}

    async def send(self, request: Request, _: Secret) -> Reply:
        await self.clock.sleep(0.1)
        self.heard.append(request.path)
        said = self._say(request, self.heard.count(request.path))
        if said is not None:
            return said
        about = [
            {**ACME, "repository_selection": "all", "id": self.places["acme"]},
            {**ORBIT, "id": self.places["orbit"]},
        ]
        if request.path == LIST:
            return answer(200, about)
        for each in about:
            if request.path == f"/app/installations/{each['id']}/access_tokens":
                return answer(201, {**TOKEN, "token": f"t{len(self.heard)}-of-{each['id']}"})
            if request.path == path_of(each["account"]["login"], "", ""):
                return answer(200, each)
        return answer(404, {"message": "Not Found"})

    async def sources(self) -> list[InstallationSource]:
        where, found = self.installations(), []
        for login in ("acme", "orbit"):
            place = await where.find(login, path_of(login, "", ""))
            assert place is not None
            found.append(InstallationSource(f"app@{login}", where, place, None))
        return found


def first(path: str, body: Any, times: int = 1) -> Callable[[Request, int], Reply | None]:
    """The first so many answers at one path are this."""
    return lambda request, number: answer(200, body) if request.path == path and number <= times else None


ENTRIES: tuple[Any, ...] = (True, 0, -7, 2**60, 8, 4_711)


@pytest.mark.parametrize("number", ENTRIES)
def test_a_list_with_a_wrong_number_takes_no_installation_away(tmp_path: Path, number: object) -> None:
    """failures.md row 107: the list names no number, another installation's or nobody's, and the token is of the right
    one all the same."""

    async def main() -> None:
        acme, orbit = await Told(tmp_path, first(LIST, [{**ACME, "id": number}, ORBIT])).sources()
        assert await orbit.renew()
        assert await acme.renew(), acme.renewal_problem
        assert acme.read().reveal().endswith("-of-7")

    simulate(main)


def test_an_installation_of_somebody_else_is_not_taken(tmp_path: Path) -> None:
    """The path of one account is answered with the installation of another one: it is asked again."""

    async def main() -> None:
        platform = Told(tmp_path, first(path_of("acme", "", ""), ORBIT))
        where = platform.installations()
        where._listed_at = 0.0  # the list is known, and has nothing
        found = await where.find("acme", path_of("acme", "", ""))
        assert found is not None
        assert found.id == 7

        told = first("/app/installations/7", ORBIT)
        where = Told(tmp_path, lambda request, number: told(request, number) or _by_number(request)).installations()
        one = await where.by_id(7)
        assert one is not None
        assert one.login == "acme"

    simulate(main)


def _by_number(request: Request) -> Reply | None:
    return answer(200, ACME) if request.path == "/app/installations/7" else None


def test_what_is_installed_anew_right_after_a_list_is_found(tmp_path: Path) -> None:
    """An App that was removed and installed anew within a minute of the last list is not gone."""

    async def main() -> None:
        platform = Told(tmp_path, lambda request, number: None)
        acme, orbit = await platform.sources()
        assert await acme.renew()
        platform.places["acme"] = 9
        assert await acme.renew(), acme.renewal_problem
        assert acme.read().reveal().endswith("-of-9")
        del platform.places["orbit"]
        platform.places["orbit"] = 8
        assert platform.heard.count(LIST) == 2
        assert await orbit.renew()

    simulate(main)


def test_an_installation_is_not_gone_while_no_list_says_so(tmp_path: Path) -> None:
    """Its number is not found, and the list can't be had: that is no reason to fail its items for good."""

    async def main() -> None:
        platform = Told(tmp_path, lambda request, number: None)
        acme, _ = await platform.sources()
        platform.places["acme"] = 9
        platform._say = lambda request, number: answer(200, {}) if request.path == LIST else None
        assert not await acme.renew()
        assert not acme.is_gone

    simulate(main)


@pytest.mark.parametrize(
    ("owner", "times", "is_given"), [("acme", 1, True), ("acme", 99, True), ("orbit", 1, True), ("orbit", 99, False)]
)
def test_a_token_that_was_given_before_is_asked_for_again(
    tmp_path: Path, owner: str, times: int, is_given: bool
) -> None:
    """An answer is given once more in the place of a new token: that of this installation, which was just refused, or
    that of another one, for which it pays. The first is taken only where nothing else comes, the other never."""

    async def main() -> None:
        platform = Told(tmp_path, lambda request, number: None)
        acme, orbit = await platform.sources()
        assert await acme.renew()
        assert await orbit.renew()
        old = {"acme": acme, "orbit": orbit}[owner].read().reveal()
        mint = "/app/installations/7/access_tokens"
        platform._say = first(mint, {**TOKEN, "token": old}, times + 1)  # one was asked for before
        assert await acme.renew() == is_given
        assert (acme.read().reveal() == old) == (owner == "acme" and times == 99)
        assert platform.heard.count(mint) == 1 + (2 if times == 1 else TRIES)

    simulate(main)


def test_a_selection_that_came_later_is_known(tmp_path: Path) -> None:
    """An App that is restricted to some repositories while it is used: what it does not find any more is looked at."""

    async def main() -> None:
        platform = Told(tmp_path, lambda request, number: None)
        acme, _ = await platform.sources()
        assert await acme.covers("acme", "api")
        platform._say = first(LIST, [ACME, ORBIT], 99)
        assert await acme.covers("acme", "api")
        assert platform.heard.count(LIST) == 1, "the list is asked for once a minute"
        await platform.clock.sleep(LIST_AGAIN_S)
        assert not await acme.covers("acme", "api")

    simulate(main)


def test_whoever_comes_while_a_list_is_made_waits_for_it(tmp_path: Path) -> None:
    """Several items are not found at once: none is judged by the list before."""

    async def main() -> None:
        platform = Told(tmp_path, lambda request, number: None)
        where = platform.installations()
        place = await where.find("acme")
        assert place is not None
        acme = InstallationSource("app@acme", where, place, None)
        platform._say = first(LIST, [ACME, ORBIT], 99)
        await platform.clock.sleep(LIST_AGAIN_S)
        found = list[bool]()

        async def look() -> None:
            found.append(await acme.covers("acme", "api"))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(look)
        assert found == [False] * 3

    simulate(main)
