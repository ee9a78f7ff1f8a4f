"""Commands that are told of a night: whatever they do, the night counts, and they learn no secret."""

import contextlib
import itertools
import json
import os
import re
import resource
import socket
import threading
import time
from pathlib import Path

import msgspec
import pytest

from bulk.audit.history import History, Night
from bulk.audit.notify import posting, sending
from bulk.audit.notify.message import message_of
from bulk.audit.policies.judging import NEW, Judgement, Violation
from bulk.audit.result import AuditResult
from bulk.manifest.audit_section import Target
from bulk.redaction import forget, remember

SECRET = "told-to-the-receiver"
AT = "2026-11-25T02:00:00.000Z"


@pytest.fixture
def drifted(tmp_path):
    """A night with drift."""
    night = Night(run="run", at=AT, exit_code=7, drift=1, verdict=("drift",))
    return AuditResult(name="fleet", history=str(tmp_path), night=night, exit_code=7, run_exit_code=0)


@pytest.fixture
def history(tmp_path):
    """Where its marks are made."""
    return History(tmp_path / "history", "fleet")


@pytest.mark.parametrize("is_old", [False, True])
@pytest.mark.parametrize("event", ["drift", "recovery"])
def test_a_night_that_failed_and_goes_on_tells_what_came_of_it(tmp_path, history, drifted, event, is_old):
    """It is told as a failure, and then as drift or as a recovery, each once; marks of an older version count, too."""
    target = Target(command=("sh", "-c", "cat >> told.jsonl"))
    night = drifted.night if event == "drift" else Night(run="run", at=AT)
    failed = msgspec.structs.replace(drifted, run_exit_code=3, exit_code=3, why="The platform is out of reach.")
    for result in (failed, failed, msgspec.structs.replace(drifted, night=night), drifted):
        assert not list(sending.notify((target,), result, history, dict(os.environ), tmp_path, now=1_795_000_000.0))
        if is_old:  # a mark was one for a night and a target
            for mark in history.path.glob("notified/run-failure-*.json"):
                mark.rename(mark.with_name(mark.name.replace("failure-", "")))
    told = [json.loads(line)["events"] for line in (tmp_path / "told.jsonl").read_text().splitlines()]
    assert told == [["failure"], [event], *([] if event == "drift" else [["drift"]])]


@pytest.fixture
def told(tmp_path, history, drifted):
    """Tells a command of a night with drift, and returns the warnings."""
    environ = {"PATH": "/usr/bin:/bin", "BULK_TOKEN": SECRET, "OTHER_NAME": SECRET, "PLAIN": "seen"}

    def tell(*command):
        target = Target(source="", command=command, on=("drift",))
        return list(sending.notify((target,), drifted, history, environ, tmp_path, now=1_795_000_000.0))

    remember(SECRET)
    yield tell
    forget(SECRET)


def test_a_command_inherits_no_secret(told, tmp_path):
    """Variables that hold a secret, whatever they are called, are not in its environment; others are."""
    assert told("sh", "-c", "env > env.txt; cat > message.json") == []
    names = {line.partition("=")[0] for line in (tmp_path / "env.txt").read_text().splitlines()}
    assert "PLAIN" in names
    assert not names & {"BULK_TOKEN", "OTHER_NAME"}
    assert (tmp_path / "message.json").read_text().startswith("{")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("no-such-program",), "no-such-program can't be started: No such file or directory"),
        (("sh\0",), "can't be started: its name or an argument can't be used"),
        (("sh", "-c", "exit 3"), "sh ended with 3"),
        (("sh", "-c", "sleep 300"), "sh took longer than 0 s, and was ended"),
        (("sh", "-c", "sleep 300 & wait"), "sh took longer than 0 s, and was ended"),
        (("yes",), "yes took longer than 0 s, and was ended"),
    ],
)
def test_a_command_that_fails_hangs_or_talks_without_end_is_a_warning(told, monkeypatch, command, says):
    """Each is told in one line, within its time, and nothing of what it prints is kept."""
    monkeypatch.setattr(sending, "COMMAND_S", 0.4 if "took longer" in says else 60.0)
    began = time.monotonic()
    (warning,) = told(*command)
    assert warning.endswith(says)
    assert time.monotonic() - began < 60


def test_what_a_command_leaves_behind_is_not_waited_for(told, tmp_path):
    """A command that starts something in the background has told when it ends itself."""
    assert told("sh", "-c", "sleep 300 & echo $! > pid") == []
    assert told("sh", "-c", "kill $(cat pid)") == []


@pytest.fixture
def posted(history, drifted):
    """Tells an address at a service that answers with what a function yields, and returns the warnings."""

    def tell(answer):
        environ = {**os.environ, "CHAT": f"json://me:{SECRET}@127.0.0.1:{service.getsockname()[1]}/{SECRET}"}
        thread = threading.Thread(target=_served, args=(service, answer), daemon=True)
        thread.start()
        target = Target(source="env:CHAT", on=("drift",))
        return list(sending.notify((target,), drifted, history, environ, Path.cwd(), now=1_795_000_000.0))

    with socket.create_server(("127.0.0.1", 0)) as service:
        yield tell


def test_a_service_that_sends_on_for_ever_is_asked_a_few_times(history, drifted):
    """A loop of redirects gets the message a few times, and a service that has moved once gets it (failures.md row
    114)."""
    asked, answers = list[bytes](), dict[int, tuple[str, str]]()
    is_over = threading.Event()

    def serve(service):
        while not is_over.is_set():
            connection, _ = service.accept()
            with connection, contextlib.suppress(OSError):
                asked.append(connection.recv(65536))
                status, where = answers[len(asked)] if len(asked) in answers else answers[0]
                text = f"HTTP/1.1 {status}\r\nLocation: {where}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                connection.sendall(text.encode())

    with socket.create_server(("127.0.0.1", 0)) as service:
        thread = threading.Thread(target=serve, args=(service,), daemon=True)
        thread.start()
        place = f"127.0.0.1:{service.getsockname()[1]}"
        environ = {**os.environ, "CHAT": f"json://{place}/hook"}
        target = Target(source="env:CHAT", on=("drift",))
        answers[0], answers[2] = ("307 Moved", f"http://{place}/there"), ("200 OK", "/")
        told = (target,), drifted, history, environ, Path.cwd()
        assert list(sending.notify(*told, now=1_795_000_000.0)) == []
        assert len(asked) == 2
        asked.clear()
        answers.pop(2)
        (warning,) = sending.notify(*told, now=1_795_000_000.0, is_again=True)
        assert warning.endswith("did not take it")
        assert len(asked) == posting.MOST_REDIRECTS + 1
        is_over.set()
        socket.create_connection(service.getsockname()).close()
        thread.join()


def _served(service, answer):
    """Answer one request with the bytes of `answer`, until the other side has gone."""
    connection, _ = service.accept()
    with connection, contextlib.suppress(OSError):
        connection.recv(65536)
        for part in answer:
            connection.sendall(part)


def _dripping():
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
    for pause in itertools.repeat(threading.Event()):
        yield b"x"
        pause.wait(0.2)


ENDLESS = itertools.chain([b"HTTP/1.1 200 OK\r\n\r\n"], itertools.repeat(bytes(1 << 20)))


def test_what_a_service_takes_is_sent(posted, history):
    """The address is that of the target, whose secrets stand in no mark."""
    assert posted([b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]) == []
    (mark,) = (history.path / "notified").iterdir()
    assert json.loads(mark.read_text())["state"] == "sent"
    assert SECRET not in mark.read_text()


@pytest.mark.parametrize("answer", [_dripping(), ENDLESS], ids=["dripping", "endless"])
def test_a_service_that_never_ends_its_answer_holds_nothing_up(posted, monkeypatch, answer):
    """The night is told of it in a line, within its time, and its memory does not grow (failures.md row 103)."""
    monkeypatch.setattr(sending, "POST_S", 3.0)
    began = time.monotonic()
    (warning,) = posted(answer)
    assert re.search(r"json://… (took longer than 3 s, and was given up|did not take it)$", warning)
    assert time.monotonic() - began < 60
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 2 * posting.MOST_MEMORY_BYTES // 1024


def test_what_is_told_of_a_key_is_short():
    """A key may be a text of any length; a message to people holds its beginning."""
    key = {"path": "x" * 1_000_000}
    long = Violation(
        policy="odd", severity="error", key=key, message="", status=NEW, first_seen=AT, last_seen=AT, fingerprint="1"
    )
    night = Night(run="run", at=AT, exit_code=7, new=1, verdict=("violation",))
    judgement = Judgement(violations=(long,))
    result = AuditResult(name="fleet", history="h", night=night, exit_code=7, run_exit_code=0, judgement=judgement)
    (said,) = message_of(result, Target(source="env:X", on=("violation",)), ("violation",), "").new
    assert said.startswith("odd path xxx")
    assert len(said) < 200


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("token-without-a-scheme-9x", "without a scheme, is none that Apprise knows"),
        ("nosuch://token-9x@host", "nosuch://…, is none that Apprise knows"),
        ("a token\nwith-lines://9x", "without a scheme, is none that Apprise knows"),
        (b"\xff\xfe", "is not UTF-8"),
        ("", "is empty or not set"),
        (os.mkfifo, "is not a regular file; a run must be able to read it again"),
        (Path.mkdir, "is a folder; expected a file"),
        (None, "there is no such file"),
    ],
)
def test_an_address_that_can_not_be_used_is_told_and_not_shown(tmp_path, history, drifted, text, says):
    """Nothing waits for a FIFO, and what may be a secret is neither in the warning nor in the mark of what was sent."""
    place = tmp_path / "url.txt"
    if callable(text):
        text(place)
    elif text is not None:
        place.write_bytes(text.encode() if isinstance(text, str) else text)
    target = Target(source="file:url.txt", on=("drift",))
    (warning,) = sending.notify((target,), drifted, history, {}, tmp_path, now=1_795_000_000.0)
    assert warning.endswith(says), warning
    (mark,) = (history.path / "notified").iterdir()
    assert not {"9x", "token"} & set(re.split(r"[^a-z0-9]+", warning + mark.read_text()))
