"""Who steers a run, as the table of actions names that person."""

import os
import pwd
import socket

import pytest

from bulk.cli.commands.cluster import stored


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container the user may have no entry, and no variable that names it."""

    def unknown(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert stored.who() == f"{os.getuid()}@{socket.gethostname()}"
