"""Wrong answers to an App: nothing is concluded from what is nobody's word, and nothing that is no token is sent."""

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bulk.manifest.credential_specs import AppSpec
from bulk.model import Failure, Reply, Request
from bulk.platform.auth.app import LIST, OUTAGE_S, TRIES, App, UselessAnswers
from bulk.platform.auth.app_keys import AppSigner
from bulk.platform.auth.installations import DOUBTS_S, Installation, Installations, InstallationSource, path_of
from bulk.platform.auth.secrets import Secret
from tests.simulation.world import simulate
from tests.virtual_time import START, VirtualClock

ACME = {"id": 7, "account": {"login": "acme"}, "repository_selection": "selected"}
END = START + 3_600.0
TOKEN = {"token": "ghs_minted", "expires_at": datetime.fromtimestamp(END, UTC).isoformat()}
PAGES: list[tuple[int, object]] = [
    (status, None) for status in (200, 201, 204, 302, 307, 400, 403, 404, 408, 422, 500, 520)
]
"""Answers of a gateway: their bodies are no JSON."""
NO_WORD: list[tuple[int, object]] = [
    *PAGES,
    (200, {"status": "ok"}),
    (201, {"status": "ok"}),
    (403, {}),
    (404, []),
    (422, "no"),
]
NO_TOKEN: list[tuple[int, object]] = [
    (201, {"token": token}) for token in ("", " ", "a b", "a\r\nX: y", "ghs_ä", "\ud800", "x" * 4_097, None, 5, ["a"])
]


def answer(status: int, body: Any, date: float | None = None) -> Reply:
    headers = {} if date is None else {"date": datetime.fromtimestamp(date, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")}
    return Reply(status=status, headers=headers, body=body)


class Platform:
    """Gives `wrong` answers to requests for what ends with `path`, and then good ones."""

    def __init__(self, tmp_path: Path, path: str, wrong: Sequence[Reply | Failure]) -> None:
        (tmp_path / "sign.py").write_text("import base64; print(base64.b64encode(b'x' * 256).decode())")
        self.spec, self.dir = AppSpec("Iv1.x", sign=f"command:{sys.executable} sign.py"), tmp_path
        self.clock, self.path, self.wrong, self.sent = VirtualClock(), path, list(wrong), 0
        self.minted = answer(201, TOKEN, START)

    async def send(self, request: Request, _: Secret) -> Reply | Failure:
        await self.clock.sleep(0.1)
        if request.path.endswith(self.path):
            self.sent += 1
            if self.wrong:
                return self.wrong.pop(0)
        if request.path == LIST:
            return answer(200, [] if self.path == "/installation" else [ACME])
        return self.minted if request.method == "POST" else answer(200, ACME)

    def installations(self) -> Installations:
        signer = AppSigner("app", self.spec, {}, self.dir)
        return Installations(App(signer, self.send, self.clock, self.clock.now), self.clock)

    def source(self) -> InstallationSource:
        return InstallationSource("app@acme", self.installations(), Installation(7, "acme", {}, False), None)


@pytest.mark.parametrize(("status", "body"), [*NO_WORD, *NO_TOKEN])
def test_what_is_no_token_is_asked_for_again(tmp_path: Path, status: int, body: object) -> None:
    """A gateway answers in the place of a new token, or the token can't stand in a header: it is asked for again
    (failures.md row 99)."""

    async def main() -> None:
        source = Platform(tmp_path, "/access_tokens", [answer(status, body)] * 2).source()
        assert await source.renew(), source.renewal_problem
        assert (source.read().reveal(), source.ends_at) == ("ghs_minted", END)

    simulate(main)


@pytest.mark.parametrize("path", [LIST, "/installation"])
@pytest.mark.parametrize(("status", "body"), NO_WORD)
def test_an_installation_is_not_missing_because_a_gateway_says_so(
    tmp_path: Path, path: str, status: int, body: object
) -> None:
    """A gateway answers in the place of the list of installations, or of one of them: the installation is found."""

    async def main() -> None:
        where = Platform(tmp_path, path, [answer(status, body)] * 2).installations()
        found = await where.find("acme", path_of("acme", "", ""))
        assert found is not None
        assert found.id == 7
        assert await where.covers(found, path_of("acme", "api", ""))

    simulate(main)


def test_what_never_is_an_answer_is_given_up_with_a_reason(tmp_path: Path) -> None:
    """Where only a gateway answers, an App is told so: after six tries, and after an outage of a quarter of an hour."""

    async def main() -> None:
        platform = Platform(tmp_path, "/access_tokens", [answer(200, None)] * 99)
        source = platform.source()
        assert not await source.renew()
        assert platform.sent == TRIES
        assert "no answer that can be used: the last one had status 200" in source.renewal_problem
        assert not source.is_gone

        platform = Platform(tmp_path, "/access_tokens", [answer(502, None)] * 999)
        source, began = platform.source(), platform.clock.monotonic()
        assert not await source.renew()
        assert "status 502" in source.renewal_problem
        assert OUTAGE_S < platform.clock.monotonic() - began < OUTAGE_S + 60.0

        with pytest.raises(UselessAnswers):
            await Platform(tmp_path, LIST, [answer(200, None)] * 99).installations().every()
        where = Platform(tmp_path, LIST, [answer(200, None)] * 99).installations()
        assert await where.find("acme", path_of("acme", "", "")) is not None, "it can be asked for by itself"

    simulate(main)


def test_a_front_end_that_replaces_all_refusals_holds_up_once(tmp_path: Path) -> None:
    """Where a page stands in the place of all refusals, the first is asked for again, and the others are believed."""

    async def main() -> None:
        platform = Platform(tmp_path, "/installation", [answer(404, None)] * 99)
        where = platform.installations()
        for number in range(10):
            assert await where.find(f"o{number}", path_of(f"o{number}", "", "")) is None
        assert platform.sent == TRIES + 9

    simulate(main)


@pytest.mark.parametrize("wrong", [1, len(DOUBTS_S), 9])
def test_an_installation_that_is_listed_is_not_gone_at_once(tmp_path: Path, wrong: int) -> None:
    """A copy of the platform that does not know an installation yet says 404, while the list has it: a token is asked
    for again, some seconds long."""

    async def main() -> None:
        said = answer(404, {"message": "Not Found"})
        source = Platform(tmp_path, "/access_tokens", [said] * wrong).source()
        assert await source.renew() == (wrong <= len(DOUBTS_S))
        assert source.is_gone == (wrong > len(DOUBTS_S))

    simulate(main)


@pytest.mark.parametrize(
    ("told", "ends_at"),
    [
        (datetime.fromtimestamp(END, UTC).strftime("%Y-%m-%dT%H:%M:%S"), END),
        (datetime.fromtimestamp(END, UTC).strftime("%Y-%m-%dT%H:%M:%S+09:00"), None),  # nine hours before
        (datetime.fromtimestamp(END, UTC).strftime("%Y-%m-%dT%H:%M:%S-09:00"), END + 9 * 3_600),
        (datetime.fromtimestamp(START, UTC).isoformat(), None),
        (datetime.fromtimestamp(START + 3.0, UTC).isoformat(), None),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-14:00", 253_402_351_199.0),
        ("soon", None),
        (int(END), None),
        (None, None),
    ],
)
def test_the_end_of_a_new_token_is_a_moment_to_come(
    tmp_path: Path, told: object, ends_at: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a new token is in UTC where it names no zone, whatever this machine's is, and one that is over
    already, or no moment, is not known."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()

    async def main() -> None:
        platform = Platform(tmp_path, "/access_tokens", [])
        platform.minted = answer(201, {"token": "ghs_minted", "expires_at": told}, START)
        source = platform.source()
        assert await source.renew()
        assert source.ends_at == ends_at

    try:
        simulate(main)
    finally:
        monkeypatch.undo()
        time.tzset()
