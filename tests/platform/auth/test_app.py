"""An App whose own requests meet limits: it waits for them, and nothing is concluded about an installation."""

import base64
import json
import sys
from email.utils import formatdate
from pathlib import Path

import anyio
import pytest

from bulk.errors import CredentialRefused
from bulk.manifest.credential_specs import AppSpec
from bulk.model import Reply, Request
from bulk.platform.auth.app import LIST, PAST_RESET_S, App
from bulk.platform.auth.app_keys import AppSigner
from bulk.platform.auth.installations import LIST_AGAIN_S, Installation, Installations, InstallationSource, path_of
from bulk.platform.auth.secrets import Secret
from tests.simulation.world import simulate
from tests.virtual_time import START, VirtualClock

EMPTY = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "0"}


def minted(request: Request) -> Reply:
    """A token of the installation that the path names."""
    body = {"token": f"ghs_minted{request.path.split('/')[3]}", "expires_at": "2027-01-15T09:00:00Z"}
    return Reply(status=201, headers={}, body=body)


@pytest.mark.parametrize(
    ("refusal", "waited_s"),
    [
        (
            Reply(
                status=403,
                headers={**EMPTY, "x-ratelimit-reset": str(int(START) + 900)},
                body={"message": "API rate limit exceeded"},
            ),
            900,
        ),
        (Reply(status=429, headers={"retry-after": "30"}, body={"message": "Too many requests"}), 30),
        (Reply(status=403, headers={}, body={"message": "You have exceeded a secondary rate limit."}), 60),
    ],
)
def test_a_limit_of_the_app_is_waited_for(tmp_path: Path, refusal: Reply, waited_s: float) -> None:
    """Fifty installations mint, the platform refuses the first for the App's budget: all wait until that is open again,
    no more than four ask before, and each has its token."""
    (tmp_path / "sign.py").write_text("import base64; print(base64.b64encode(b'x' * 256).decode())")
    spec = AppSpec("Iv1.x", sign=f"command:{sys.executable} sign.py")

    async def main() -> None:
        clock, sent = VirtualClock(), list[float]()

        async def send(request: Request, token: Secret) -> Reply:
            sent.append(clock.monotonic())
            await clock.sleep(0.1)
            return refusal if sent[-1] < waited_s else minted(request)

        where = Installations(App(AppSigner("app", spec, {}, tmp_path), send, clock, clock.now), clock)
        sources = [InstallationSource(f"app@{n}", where, Installation(n, f"{n}", {}, False), None) for n in range(50)]
        async with anyio.create_task_group() as group:
            for source in sources:
                group.start_soon(source.renew)
        assert [source.renewal_problem for source in sources] == [""] * 50
        early = [at for at in sent if at < waited_s]
        assert (len(early) <= 4, len(sent) - len(early)) == (True, 50)
        assert waited_s <= min(set(sent) - set(early)) <= waited_s + PAST_RESET_S + 1.0

    simulate(main)


def test_an_app_that_is_installed_anew_is_looked_at_anew(tmp_path: Path) -> None:
    """A repository that an installation did not cover, and an account without one, are asked for again once a new list
    has the installation that came since."""
    (tmp_path / "sign.py").write_text("import base64; print(base64.b64encode(b'x' * 256).decode())")
    spec = AppSpec("Iv1.x", sign=f"command:{sys.executable} sign.py")

    async def main() -> None:
        clock, number = VirtualClock(), 1

        async def send(request: Request, token: Secret) -> Reply:
            await clock.sleep(0.1)
            login = "acme" if request.path == LIST else request.path.split("/")[2]
            one = {"id": number, "account": {"login": login}, "repository_selection": "selected"}
            if request.path == LIST:
                return Reply(status=200, headers={}, body=[one])
            if request.method == "POST":
                return minted(request) if f"/{number}/" in request.path else Reply(status=404, headers={}, body={})
            is_there = number == 2
            return Reply(status=200 if is_there else 404, headers={}, body=one if is_there else {})

        where = Installations(App(AppSigner("app", spec, {}, tmp_path), send, clock, clock.now), clock)
        found = await where.find("acme")
        assert found is not None
        source = InstallationSource("app@acme", where, found, None)
        assert await source.renew()
        assert not await source.covers("acme", "api")
        assert await where.find("other", path_of("other", "", "")) is None
        await clock.sleep(LIST_AGAIN_S)
        number = 2
        assert not await source.covers("acme", "api"), "it is asked once"
        assert await source.renew()
        assert source.installation.id == 2
        assert await source.covers("acme", "api")
        assert await where.find("other", path_of("other", "", "")) is not None

    simulate(main)


@pytest.mark.parametrize(("links", "on_a_page"), [("none", 100), ("none", 30), ("next", 30), ("first", 100)])
def test_all_installations_are_listed_on_every_platform(tmp_path: Path, links: str, on_a_page: int) -> None:
    """A platform may show fewer on a page than were asked for, with a link to the next one or without, or show its
    last page for ever, or lose all links but one: the list has all of them, and ends."""
    (tmp_path / "sign.py").write_text("import base64; print(base64.b64encode(b'x' * 256).decode())")
    spec = AppSpec("Iv1.x", sign=f"command:{sys.executable} sign.py")

    async def main() -> None:
        clock, asked = VirtualClock(), list[str]()

        async def send(request: Request, token: Secret) -> Reply:
            await clock.sleep(0.1)
            asked.append(request.query)
            page = min(int(request.query.rpartition("=")[2]), 2) - 1
            assert len(asked) < 9, "it goes on for ever"
            numbers = range(page * on_a_page + 1, (page + 1) * on_a_page + 1)
            is_linked = links != "none" and page == 0
            headers = {"link": f'<https://x/api/v3{LIST}?page=2>; rel="{links}"'} if is_linked else {}
            return Reply(status=200, headers=headers, body=[{"id": n, "account": {"login": f"o{n}"}} for n in numbers])

        where = Installations(App(AppSigner("app", spec, {}, tmp_path), send, clock, clock.now), clock)
        assert len(await where.every()) == 2 * on_a_page
        assert len(asked) == 3

    simulate(main)


@pytest.mark.parametrize("machine_s", [-7_200.0, 0.0, 7_200.0])
@pytest.mark.parametrize("date_s", [-7_200.0, 0.0, 7_200.0, None])
def test_a_clock_that_is_wrong_ends_no_app(tmp_path: Path, machine_s: float, date_s: float | None) -> None:
    """The machine's clock or the platform's `Date` is hours from the clock by which the platform looks at a JWT: the
    other one is used, for the second JWT too. Where neither is right, the refusal names the clock and not the key."""
    (tmp_path / "sign.py").write_text("import base64; print(base64.b64encode(b'x' * 256).decode())")
    spec = AppSpec("Iv1.x", sign=f"command:{sys.executable} sign.py")

    async def main() -> None:
        clock, refused = VirtualClock(), 0
        true_now, heard = clock.now, list[float]()
        clock.skew_s = machine_s

        async def send(request: Request, token: Secret) -> Reply:
            nonlocal refused
            now = true_now() - machine_s
            headers = {} if date_s is None else {"date": formatdate(now + date_s, usegmt=True)}
            heard[:] = [] if date_s is None else [date_s - machine_s]
            claims = json.loads(base64.urlsafe_b64decode(token.reveal().split(".")[1] + "=="))
            if claims["iat"] <= now < claims["exp"] <= now + 600.0:
                return Reply(status=200, headers=headers, body=[])
            refused += 1
            said = "'Expiration time' claim ('exp') is too far in the future"
            return Reply(status=401, headers=headers, body={"message": said})

        app = App(AppSigner("app", spec, {}, tmp_path), send, clock, lambda: clock.now() + sum(heard))
        where = Installations(app, clock)
        for _ in range(3):
            if machine_s and date_s != 0.0:
                with pytest.raises(CredentialRefused, match="Set this machine's clock"):
                    await where.every()
                return
            await where.look_again("acme")
            await clock.sleep(600.0)
        assert refused <= 1

    simulate(main)
