"""The device flow and refreshing against a site that answers badly, late, or not at all."""

from __future__ import annotations

import json
import resource
import threading
from collections.abc import Iterator, Sequence
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bulk.clock import Clock
from bulk.errors import CredentialMissing
from bulk.platform.auth import device_login
from bulk.platform.auth.device_login import Site, log_in
from bulk.platform.auth.logins import Login, LoginCredential, store

CODE = {"device_code": "d1", "user_code": "ABCD-EFGH", "verification_uri": "http://x.example/login/device"}
PAIR: dict[str, Any] = {
    "access_token": "access-of-erin-55c1",
    "refresh_token": "refresh-of-erin-9d03",
    "expires_in": 28_800,
}
PENDING, SLOWER = {"error": "authorization_pending"}, {"error": "slow_down"}
LOST, SPENT = b"", {"error": "bad_refresh_token"}
HOURS = 3_600.0

Told = dict[str, Any] | bytes | int


class Scripted(ThreadingHTTPServer):
    """A site whose answers are written down before; the last one is for all that follow.

    An answer is JSON, bytes as they are (none: the connection is closed), or a status. `asked` has every form.
    """

    def __init__(self, answers: Sequence[Told]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers, self.asked = list(answers), list[str]()
        self.error_status = 200
        self.date = Clock().now()
        self.pause_s: float | None = None  # between two bytes of a body
        self.is_over = threading.Event()

    @property
    def site(self) -> Site:
        """Where it is."""
        return Site(f"http://127.0.0.1:{self.server_port}")


class _Handler(BaseHTTPRequestHandler):
    server: Scripted

    def do_POST(self) -> None:
        self.server.asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        answers = self.server.answers
        told = answers.pop(0) if len(answers) > 1 else answers[0]
        if told == LOST:
            self.close_connection = True
            return
        status = told if isinstance(told, int) else 200
        if isinstance(told, dict) and "error" in told:
            status = self.server.error_status
        self.send_response_only(status)
        self.send_header("Date", formatdate(self.server.date, usegmt=True))
        self.end_headers()
        whole = told if isinstance(told, bytes) else json.dumps(told).encode()
        pause_s = self.server.pause_s
        for piece in [whole] if pause_s is None else [whole[at : at + 1] for at in range(len(whole))]:
            self.wfile.write(piece)
            self.server.is_over.wait(pause_s or 0.0)

    def log_message(self, *_: object) -> None:
        """Nothing is shown."""


@pytest.fixture
def scripted() -> Iterator[Any]:
    """Make sites; they end with the test."""
    made: list[Scripted] = []

    def begin(*answers: Told) -> Scripted:
        made.append(Scripted(answers))
        threading.Thread(target=made[-1].serve_forever, args=(0.01,), daemon=True).start()
        return made[-1]

    yield begin
    for each in made:
        each.is_over.set()
        each.shutdown()
        each.server_close()


def logged_in(server: Scripted) -> tuple[Any, list[float]]:
    """What a login ends with, and the pauses that it took (seconds)."""
    pauses: list[float] = []
    try:
        return log_in(server.site, "Iv1.x", lambda *_: None, pauses.append), pauses
    except CredentialMissing as error:
        return str(error), pauses


def test_pauses_grow_as_the_site_asks(scripted) -> None:
    """Each `slow_down` makes the pauses longer, by what it names or by 5 s, and never shorter."""
    server = scripted({**CODE, "interval": 5}, SLOWER, {**SLOWER, "interval": 20}, {**SLOWER, "interval": 5}, PAIR)
    granted, pauses = logged_in(server)
    assert granted.access_token == PAIR["access_token"]
    assert pauses == [5.0, 10.0, 20.0, 25.0]


@pytest.mark.parametrize(
    "bad", [LOST, 502, 503, 429, 403, 404, 520, b"<html>", b"[" * 60_000, b"[]", {}, {"status": "ok"}, {"error": 5}]
)
def test_a_question_without_an_answer_is_asked_again(scripted, bad: Told) -> None:
    """The user may have typed the code already: whatever goes wrong on the way ends no login."""
    granted, pauses = logged_in(scripted({**CODE, "interval": 1}, PENDING, bad, PAIR))
    assert granted.access_token == PAIR["access_token"]
    assert pauses == [1.0, 1.0, 6.0]


@pytest.mark.parametrize("answer", [PENDING, SLOWER, LOST, 502])
def test_a_code_ends_whatever_the_site_says(scripted, answer: Told) -> None:
    """A site that says nothing else for ever is left when the code has ended."""
    why, pauses = logged_in(scripted({**CODE, "interval": 10, "expires_in": 60}, answer))
    assert isinstance(why, str)
    assert 60 <= sum(pauses) <= 100


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("expired_token", "run the same command again"),
        ("incorrect_device_code", "run the same command again"),
        ("access_denied", "no login: he said no"),
    ],
)
def test_errors_that_end_a_login(scripted, status: int, error: str, reason: str) -> None:
    """The reason is the site's, in whichever status it comes; where another code would help, that is said."""
    server = scripted(CODE, {"error": error, "error_description": "he said no"})
    server.error_status = status
    why, pauses = logged_in(server)
    assert reason in why
    assert len(pauses) == 1


@pytest.mark.parametrize("token", [5, None, "", "two words", "a\r\nX-Evil: 1", ["x"]])
def test_what_is_no_token_is_refused(scripted, token: object) -> None:
    """Nothing that could break a header is kept."""
    why, _ = logged_in(scripted(CODE, {**PAIR, "access_token": token}))
    assert "is not a token" in why or "gave a token with" in why


def test_a_bundle_that_is_not_there_is_named(tmp_path: Path) -> None:
    """It may have gone since the login."""
    with pytest.raises(CredentialMissing, match=r"gone\.pem can't be used: No such file"):
        Site("https://127.0.0.1:9", tmp_path / "gone.pem").post("/", {})


class Wrong(Clock):
    """A machine whose clock is wrong."""

    def __init__(self, by_s: float = 0.0) -> None:
        right = Clock()
        self.now = lambda: right.now() + by_s


def stored(server: Scripted, folder: Path, clock: Clock, ends_at: float = 1.0) -> LoginCredential:
    """A login there, which ends then, as a credential."""
    login = Login(
        base_url=f"{server.site.url}/api/v3",
        client_id="Iv1.x",
        access_token="access-of-erin-0001",
        refresh_token="refresh-of-erin-0001",
        ends_at=ends_at,
        lasts_s=28_800.0,
    )
    store(folder, "erin", login, clock)
    return LoginCredential("reader", "erin", login.base_url, {"BULK_LOGINS": str(folder)}, folder, clock=clock)


def test_a_lost_answer_is_asked_for_once_more(scripted, tmp_path: Path) -> None:
    """A refresh whose answer never came may have done nothing: then the same refresh token still works."""
    server = scripted(LOST, PAIR)
    assert stored(server, tmp_path, Clock()).raw() == PAIR["access_token"].encode()
    assert len(server.asked) == 2
    assert json.loads((tmp_path / "erin.json").read_text())["refresh_token"] == PAIR["refresh_token"]


def test_an_answer_byte_by_byte_is_not_waited_for(scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a socket begins anew with each byte; that of a request does not."""
    monkeypatch.setattr(device_login, "ASK_S", 0.2)
    server = scripted(PAIR)
    server.pause_s = 0.1
    clock = Clock()
    began = clock.monotonic()
    with pytest.raises(CredentialMissing, match=r"no whole answer within 0.2 s; run the same command again"):
        stored(server, tmp_path, clock).raw()
    assert clock.monotonic() - began < 2.0
    assert len(server.asked) == 2
    assert json.loads((tmp_path / "erin.json").read_text())["refresh_token"] == "refresh-of-erin-0001"


@pytest.mark.parametrize("wrong", [403, 404, 500, 520, b"<html>", b"[]", {}, {"status": "ok"}, {"error": 5}, SLOWER])
def test_what_a_gateway_says_ends_no_login(scripted, tmp_path: Path, wrong: Told) -> None:
    """An answer that is not the site's says nothing of a refresh token: it is sent once more, and where only such
    answers come, the login is not said to have ended."""
    assert stored(scripted(wrong, PAIR), tmp_path, Clock()).raw() == PAIR["access_token"].encode()
    with pytest.raises(CredentialMissing, match=r"the login can't be refreshed: .*run the same command again"):
        stored(scripted(wrong), tmp_path, Clock()).raw()


@pytest.mark.parametrize("other", [{}, {"refresh_token": None}, {"refresh_token": ""}])
def test_a_refresh_token_is_kept_until_another_comes(scripted, tmp_path: Path, other: dict[str, Any]) -> None:
    """A site that gives no other refresh token lets the present one be used again: it is not thrown away."""
    answer = {name: told for name, told in PAIR.items() if name != "refresh_token"} | other
    stored(scripted(answer), tmp_path, Clock()).raw()
    assert json.loads((tmp_path / "erin.json").read_text())["refresh_token"] == "refresh-of-erin-0001"


@pytest.mark.parametrize("told", [0, -5, 1, 10, "nan", 1e300, [1], None])
def test_a_token_whose_life_can_not_be_is_used_until_it_is_refused(scripted, tmp_path: Path, told: object) -> None:
    """A site names no life of a token that could be: its end is not known, and no run stops because it is over."""
    credential = stored(scripted(PAIR | {"expires_in": told}), tmp_path, Clock())
    assert credential.raw()
    assert credential.ends_at is None


@pytest.mark.parametrize("answers", [(LOST, SPENT), (SPENT,), (LOST,), (502,)])
def test_what_to_do_when_a_login_has_ended(scripted, tmp_path: Path, answers: Sequence[Told]) -> None:
    """Where its tokens are spent, the command that makes it anew is told whole; where that is not known, nothing is
    thrown away, and the next process tries it again."""
    server = scripted(*answers)
    credential = stored(server, tmp_path, Clock())
    before = (tmp_path / "erin.json").read_bytes()
    with pytest.raises(CredentialMissing) as refused:
        credential.raw()
    again = f"bulk login erin --client-id Iv1.x --base-url {server.site.url}/api/v3"
    assert str(refused.value).endswith(again)
    assert ("run the same command again" in str(refused.value)) == (SPENT not in answers)
    assert (tmp_path / "erin.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["erin.json", "erin.lock"]


@pytest.mark.parametrize("by_s", [-14 * HOURS, -10 * HOURS, 0.0, 10 * HOURS, 14 * HOURS])
def test_a_wrong_clock_refreshes_no_more_often(scripted, tmp_path: Path, by_s: float) -> None:
    """A machine's clock that is wrong by longer than a token lasts: its end is the platform's, and it is refreshed once
    in its life."""
    server, clock = scripted(PAIR), Wrong(by_s)
    assert stored(server, tmp_path, clock, ends_at=clock.now()).raw()
    assert len(server.asked) == 1
    for _ in range(3):
        credential = LoginCredential(
            "reader", "erin", f"{server.site.url}/api/v3", {"BULK_LOGINS": str(tmp_path)}, tmp_path, clock=clock
        )
        assert credential.raw() == PAIR["access_token"].encode()
        assert credential.ends_at is not None
        assert abs(credential.ends_at - server.date - 28_800.0) < 5.0
    assert len(server.asked) == 1


def test_a_disk_that_refuses_keeps_the_tokens_good(scripted, tmp_path: Path) -> None:
    """Where the new tokens can't be written they are not asked for: the old ones would be worth nothing."""
    server = scripted(PAIR)
    credential = stored(server, tmp_path, Clock())
    (tmp_path / "erin.json.part").mkdir()
    with pytest.raises(CredentialMissing, match="can't be written"):
        credential.raw()
    assert server.asked == []


def test_a_disk_without_room_keeps_the_tokens_good(scripted, tmp_path: Path) -> None:
    """A full disk takes a new file and nothing in it: that is found out before the old tokens are spent."""
    server = scripted(PAIR)
    credential = stored(server, tmp_path, Clock())
    before, limits = (tmp_path / "erin.json").read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(CredentialMissing, match="can't be written"):
            credential.raw()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert server.asked == []
    assert (tmp_path / "erin.json").read_bytes() == before


def test_tokens_of_one_platform_are_not_sent_to_another(scripted, tmp_path: Path) -> None:
    """A manifest for another host can't use a login by its name alone."""
    server = scripted(PAIR)
    stored(server, tmp_path, Clock())
    other = "http://127.0.0.1:9/api/v3"
    credential = LoginCredential("reader", "erin", other, {"BULK_LOGINS": str(tmp_path)}, tmp_path, clock=Clock())
    with pytest.raises(CredentialMissing, match="are sent nowhere else"):
        credential.raw()
    assert server.asked == []


def test_a_login_that_is_open_to_others_says_so(scripted, tmp_path: Path) -> None:
    """A login that is there is not said to be missing: what is wrong with its file is."""
    credential = stored(scripted(PAIR), tmp_path, Clock(), ends_at=Clock().now() + 9 * HOURS)
    (tmp_path / "erin.json").chmod(0o644)
    with pytest.raises(CredentialMissing, match="chmod 600"):
        credential.read()
    (tmp_path / "erin.json").unlink()
    with pytest.raises(CredentialMissing, match="there is no login 'erin'"):
        credential.read()


def test_a_file_that_somebody_changed_is_no_token(scripted, tmp_path: Path) -> None:
    """What it holds then is told as no token, and not shown."""
    credential = stored(scripted(PAIR), tmp_path, Clock(), ends_at=Clock().now() + 9 * HOURS)
    kept = json.loads((tmp_path / "erin.json").read_text())
    (tmp_path / "erin.json").write_text(json.dumps(kept | {"access_token": "two words"}))
    with pytest.raises(CredentialMissing, match="is not a token") as refused:
        credential.read()
    assert "words" not in str(refused.value)
