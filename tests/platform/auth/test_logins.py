"""Logins that several processes share: who refreshes, who waits for it, and what is shown of them."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from bulk.clock import Clock
from bulk.errors import CredentialMissing
from bulk.platform.auth.logins import TURN_S, Login, LoginCredential, store
from bulk.redaction import redact
from bulk.redaction.known import MASK

LOGIN = Login(
    base_url="http://127.0.0.1:9/api/v3",
    client_id="Iv1.x",
    access_token="access-of-dora-0b77",
    refresh_token="refresh-of-dora-4f1c",
    ends_at=1.0,
    lasts_s=28_800.0,
)


class FastClock(Clock):
    """Each look at it is a third of the longest wait later than the one before."""

    def __init__(self) -> None:
        ticks = count()
        self.monotonic = lambda: next(ticks) * TURN_S / 3


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """A folder with a login that has ended, which somebody refreshes who stands still."""
    store(tmp_path, "dora", LOGIN, Clock())
    with (tmp_path / "dora.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield tmp_path


def test_whoever_stands_still_holds_up_nobody_for_ever(held: Path) -> None:
    """A process that refreshes and never ends is waited for a minute; then the error names the file that it holds."""
    credential = LoginCredential("reader", "dora", LOGIN.base_url, {"BULK_LOGINS": str(held)}, held, clock=FastClock())
    with pytest.raises(CredentialMissing, match="another process has been refreshing") as refused:
        credential.raw()
    assert str(held / "dora.lock") in str(refused.value)


def test_who_waits_for_a_refresh_can_be_stopped(held: Path) -> None:
    """A run that ends does not wait for the refresh of another process."""
    around, stop = {"BULK_LOGINS": str(held)}, threading.Event()
    credential = LoginCredential("reader", "dora", LOGIN.base_url, around, held, clock=Clock())
    stop.set()
    with pytest.raises(CredentialMissing):
        credential.raw(stop)


@pytest.mark.parametrize("text", ["", '{"base_url": "http://127.0.0.1:9/api/v3", "acc', "[]", "\0", "{}"])
def test_a_damaged_file_is_no_missing_login(tmp_path: Path, text: str) -> None:
    """It is said to be damaged, with its place and the whole command that makes it anew; nothing of it is shown."""
    store(tmp_path, "dora", LOGIN, Clock()).write_text(text)
    around = {"BULK_LOGINS": str(tmp_path)}
    credential = LoginCredential("reader", "dora", LOGIN.base_url, around, tmp_path, clock=Clock())
    with pytest.raises(CredentialMissing, match=r"dora\.json is damaged or not whole; run: bulk login dora") as refused:
        credential.read()
    assert f"--base-url {LOGIN.base_url}" in str(refused.value)


def test_nothing_shows_the_tokens_of_a_login() -> None:
    """Neither its repr nor what is written has its tokens, also the refresh token (failures.md row 62)."""
    assert "dora" not in repr(LOGIN)
    assert redact(f"{LOGIN.access_token} {LOGIN.refresh_token}") == f"{MASK} {MASK}"
