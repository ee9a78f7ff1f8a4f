"""Tokens from the environment, from files and from programs: what is taken, what is refused, what is not shown."""

import os
import shlex
import sys
import traceback
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from bulk.clock import Clock
from bulk.errors import CredentialMissing, CredentialRefused
from bulk.platform.auth.credentials import Credential
from bulk.platform.auth.secrets import Secret
from bulk.redaction import redact

TOKEN = "ghp_0123456789abcdefABCDEF"


def credential(
    source: str, tmp_path: Path, environ: dict[str, str] | None = None, clock: Clock | None = None
) -> Credential:
    """A credential whose relative files lie in `tmp_path`."""
    return Credential("admin", source, environ or {"PATH": os.environ["PATH"]}, tmp_path, clock=clock)


def program(code: str) -> str:
    """A `command:` source that runs this Python."""
    return f"command:{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def why_missing(source: str, tmp_path: Path, environ: dict[str, str] | None = None, clock: Clock | None = None) -> str:
    """The message with which a source is refused; nothing of what it gave may be in it or in its traceback."""
    with pytest.raises(CredentialMissing) as refused:
        credential(source, tmp_path, environ, clock).read()
    shown = traceback.TracebackException.from_exception(refused.value, capture_locals=True)
    for text in (str(refused.value), "".join(shown.format())):
        assert "junk" not in text.replace("test_junk", "")
    assert "admin" in str(refused.value)
    return str(refused.value)


def private(path: Path, content: bytes) -> Path:
    """A file that only its owner may read."""
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def test_a_token_comes_from_the_environment(tmp_path):
    """`env:NAME` reads the variable from the environment it was given."""
    assert credential("env:MY_TOKEN", tmp_path, {"MY_TOKEN": TOKEN}).read().reveal() == TOKEN


@pytest.mark.parametrize("environ", [{}, {"MY_TOKEN": ""}])
def test_a_variable_that_is_not_set_is_named(tmp_path, environ):
    """failures.md row 61: a missing variable is told by its name."""
    assert f"MY_TOKEN is {'empty' if environ else 'not set'}" in why_missing(
        "env:MY_TOKEN", tmp_path, {"X": "y", **environ}
    )


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n"])
def test_a_token_comes_from_a_file(tmp_path, end):
    """`file:PATH` reads a file, relative to the manifest's folder; line ends after the token don't count."""
    private(tmp_path / "token", TOKEN.encode() + end)
    assert credential("file:token", tmp_path).read().reveal() == TOKEN
    assert credential(f"file:{tmp_path}/token", Path("/")).read().reveal() == TOKEN


def test_the_users_home_is_understood(tmp_path, monkeypatch):
    """`file:~/token` is in the user's home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    private(tmp_path / "token", TOKEN.encode())
    assert credential("file:~/token", Path("/")).read().reveal() == TOKEN


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o610, 0o777])
def test_a_file_that_others_can_open_is_refused(tmp_path, mode):
    """failures.md row 61: a token's file must be closed to others; the message has the command that closes it."""
    path = private(tmp_path / "my token", TOKEN.encode())
    path.chmod(mode)
    assert f"chmod 600 '{path}'" in why_missing("file:my token", tmp_path)


def test_what_is_no_regular_file_is_refused(tmp_path):
    """failures.md row 59: a folder, a FIFO (which is not waited for), a device or nothing is not a token's file."""
    os.mkfifo(tmp_path / "fifo", 0o600)
    (tmp_path / "folder").mkdir(mode=0o700)
    assert "not a regular file" in why_missing("file:fifo", tmp_path)
    assert "file" in why_missing("file:folder", tmp_path)
    assert "regular file" in why_missing("file:/dev/null", tmp_path)
    assert "No such file" in why_missing("file:nothing", tmp_path)


def test_a_file_of_another_user_is_refused(tmp_path):
    """failures.md row 61: a token's file belongs to the user."""
    path = Path("/etc/hosts")  # of root; and root can give a file away
    if os.geteuid() == 0:
        path = private(tmp_path / "token", TOKEN.encode())
        os.chown(path, 12345, 12345)
    assert "another user" in why_missing(f"file:{path}", tmp_path)


JUNK = {
    "nothing": b"",
    "only line ends": b"\n\r\n",
    "two lines": b"junk-one\njunk-two\n",
    "a carriage return": b"junk\rjunk",
    "a header": b"junk\r\nX-Evil: 1",
    "a space": b"junk junk",
    "a tab": b"junk\tjunk",
    "a space before": b" junk",
    "NUL": b"junk\0junk",
    "an escape": b"\x1b[31mjunk",
    "not ASCII": "junkü".encode(),
    "not UTF-8": b"junk\xff",
    "too long": b"junk" * 1025,
    "far too long": b"junk" * 1_000_000,
}


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK.keys())
def test_junk_in_a_file_is_refused_without_showing_it(tmp_path, junk):
    """failures.md rows 36 and 58: what could break a header or is not a token at all is refused, and not shown."""
    private(tmp_path / "file", junk)
    assert "is not a token" in why_missing("file:file", tmp_path)


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK.keys())
def test_junk_of_a_program_is_refused_without_showing_it(tmp_path, junk):
    """failures.md row 36: a program that prints junk gives no token, and its output appears nowhere."""
    private(tmp_path / "output", junk)
    code = "import sys; sys.stdout.buffer.write(open('output', 'rb').read())"
    assert "is not a token" in why_missing(program(code), tmp_path)


def test_a_token_of_the_longest_length_is_taken(tmp_path):
    """4 KiB is a token, one byte more is not."""
    private(tmp_path / "token", b"Tk" * 2048 + b"\n")
    assert len(credential("file:token", tmp_path).read().reveal()) == 4096


def test_a_token_comes_from_a_program(tmp_path):
    """`command:` runs a program without a shell, in the manifest's folder, and takes what it prints."""
    code = "import os, sys; print('tok_' + '_'.join(sys.argv[1:]) + '_' + os.path.basename(os.getcwd()))"
    source = f"{program(code)} 'a;b' $HOME '*'"
    token = credential(source, tmp_path).read().reveal()
    assert token == f"tok_a;b_$HOME_*_{tmp_path.name}"


def test_a_program_gets_no_input_and_no_token(tmp_path, capfd):
    """failures.md rows 36 and 38: no input, no variable that holds a token, and standard error goes nowhere."""
    Secret("tok_known_secret")
    environ = {
        "PATH": os.environ["PATH"],
        "BULK_TOKEN": "tok_of_the_user",
        "BULK_ADMIN_TOKEN": "tok_of_the_user",
        "OTHER": "tok_known_secret",
        "HARMLESS": "yes",
    }
    code = (
        "import os, sys; print('ju' 'nk', file=sys.stderr);"
        " print(','.join(sorted(os.environ)) + '|' + sys.stdin.read())"
    )
    names = credential(program(code), tmp_path, environ).read().reveal()
    assert names.endswith("|")
    assert "HARMLESS" in names
    assert not {"BULK_TOKEN", "BULK_ADMIN_TOKEN", "OTHER"} & set(names[:-1].split(","))
    assert capfd.readouterr() == ("", "")


def test_a_program_that_fails_is_told_by_its_exit_code(tmp_path):
    """failures.md row 36: a program that ends with an error gives no token, whatever it printed before."""
    assert "exit code 3" in why_missing(program("print('ju' 'nk'); raise SystemExit(3)"), tmp_path)
    assert "signal 9" in why_missing(program("import os; os.kill(os.getpid(), 9)"), tmp_path)
    assert "can't be started" in why_missing("command:/no/such/program", tmp_path)


class JumpingClock(Clock):
    """Each look at it takes ten seconds, once a file is there."""

    def __init__(self, begun: Path | None = None) -> None:
        self.at, self.begun = 0.0, begun

    def monotonic(self) -> float:
        if self.begun is None or self.begun.exists():
            self.at += 10.0
        return self.at


HANGING = (
    "import os, time; open('pid', 'w').write(str(os.getpid()));"
    " os.close(1) if {} else print('ju' 'nk', flush=True); time.sleep(600)"
)


@pytest.mark.parametrize("closes", [True, False])
def test_a_program_that_hangs_is_killed(tmp_path, closes):
    """failures.md row 36: after its 30 s a program is killed, whether it still holds its output or not."""
    assert "30 s" in why_missing(program(HANGING.format(closes)), tmp_path, clock=JumpingClock())


def test_what_a_hanging_program_started_dies_with_it(tmp_path):
    """failures.md row 36: a killed program leaves no process behind that it started."""
    os.mkfifo(tmp_path / "held", 0o600)
    held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    try:
        holder = "held = open('held', 'w'); open('begun', 'w').close(); import time; time.sleep(600)"
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {holder!r}])"
        clock = JumpingClock(tmp_path / "begun")
        assert "30 s" in why_missing(program(code), tmp_path, clock=clock)
        os.set_blocking(held, True)
        while os.read(held, 100):  # ends when nobody holds the other side
            pass
    finally:
        os.close(held)


def test_what_a_program_leaves_running_is_not_waited_for(tmp_path):
    """A program that starts an agent, which keeps its output open, is done when it has ended itself."""
    code = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        " open('pid', 'w').write(str(p.pid)); print('tok_of_program')"
    )
    try:
        assert credential(program(code), tmp_path).read().reveal() == "tok_of_program"
    finally:
        os.kill(int((tmp_path / "pid").read_text()), 9)


def test_the_source_is_opened_once(tmp_path):
    """`read` gives what it read first; only `renew` opens the source again."""
    private(tmp_path / "token", b"tok_first_one")
    one = credential("file:token", tmp_path)
    first = one.read()
    private(tmp_path / "token", b"tok_second_one")
    assert one.read() is first


async def test_renewing_takes_another_token(tmp_path):
    """failures.md row 35: after a renewal `read` gives the other token; the same one again is not a renewal."""
    private(tmp_path / "token", b"tok_first_one")
    for source in ("file:token", program("print(open('token').read())")):
        private(tmp_path / "token", b"tok_first_one")
        one = credential(source, tmp_path)
        one.read()
        assert not await one.renew()
        assert "same token" in one.renewal_problem
        private(tmp_path / "token", b"tok_second_one")
        assert await one.renew()
        assert one.read().reveal() == "tok_second_one"
        assert one.renewal_problem == ""
        assert "tok_first_one" not in redact("tok_first_one and tok_second_one")


async def test_a_renewal_that_fails_is_no_exception(tmp_path):
    """failures.md row 36: a source that gives junk now, or can't change, renews nothing, and the old token stays."""
    private(tmp_path / "token", b"tok_first_one")
    one = credential("file:token", tmp_path)
    one.read()
    private(tmp_path / "token", b"junk junk")
    assert not await one.renew()
    assert "is not a token" in one.renewal_problem
    assert "junk" not in one.renewal_problem
    assert one.read().reveal() == "tok_first_one"
    fixed = credential("env:MY_TOKEN", tmp_path, {"MY_TOKEN": TOKEN})
    fixed.read()
    assert not await fixed.renew()
    assert fixed.renewal_problem


async def test_a_cancelled_renewal_stops_its_program(tmp_path):
    """failures.md row 36: cancelled, a renewal ends at once, and its program does not live on."""
    one = credential(program(HANGING.format(False)), tmp_path)
    pid_file = tmp_path / "pid"
    async with anyio.create_task_group() as group:
        group.start_soon(one.renew)
        with anyio.fail_after(60):
            while not (pid_file.exists() and pid_file.read_text()):
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    pid = int(pid_file.read_text())
    with anyio.fail_after(60):
        while is_alive(pid):
            await anyio.lowlevel.checkpoint()


def is_alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    "source",
    [
        "",
        "ghp_literal_token",
        "env:",
        "env:A B",
        "env:A=b",
        "file:",
        "file: ",
        "file:\0",
        "command:",
        "command:'open",
        "http://x",
    ],
)
def test_a_source_that_is_written_wrong_is_told_without_opening_it(tmp_path, source):
    """failures.md row 61: a literal token or a malformed source is refused by the offline check, and not repeated."""
    one = credential(source, tmp_path)
    with pytest.raises(CredentialMissing) as refused:
        one.check_source()
    assert "literal" not in str(refused.value)
    assert "literal" not in repr(one)


@pytest.mark.parametrize("source", ["env:NOT_SET", "file:/no/such/file", "command:/no/such/program --flag"])
def test_the_offline_check_opens_nothing(tmp_path, source):
    """interface.md §4: `check` opens no credential: a well-written source passes, whether or not there is something."""
    credential(source, tmp_path).check_source()


class At(Clock):
    """This machine's clock stands still at a moment (UTC epoch seconds)."""

    def __init__(self, at: float) -> None:
        self.now = lambda: at


@pytest.mark.parametrize(
    ("line", "ends_at"),
    [
        ("2026-11-21T09:00:00Z", 1_795_251_600.0),
        ("2026-11-21T10:30:00.5+01:30\r", 1_795_251_600.5),
        ("", None),
    ],
)
def test_a_program_may_say_when_its_token_ends(tmp_path, line, ends_at):
    """failures.md row 35: a moment on the second line of what a program prints is the token's end."""
    one = credential(program(f"print('tok_of_an_hour'); print({line!r})"), tmp_path, clock=At(1_795_251_000.0))
    assert one.read().reveal() == "tok_of_an_hour"
    assert one.ends_at == ends_at


@pytest.mark.parametrize("line", ["soon", "2026-11-21T09:00:00", "3600", "tok_another"])
def test_a_second_line_that_names_no_moment_is_refused(tmp_path, line):
    """failures.md row 36: a second line that does not say when the token ends makes the output no token."""
    private(tmp_path / "output", f"junk\n{line}\n".encode())
    code = "import sys; sys.stdout.buffer.write(open('output', 'rb').read())"
    assert "more than one line" in why_missing(program(code), tmp_path)


def test_a_clock_that_is_a_day_fast_refuses_no_token(tmp_path):
    """failures.md row 35: before the platform has told its time, a first token is refused only for an end that more
    than a wrong clock explains; later ones are left to the platform's time."""
    source, end = program("print('tok'); print('2026-11-21T09:00:00Z')"), 1_795_251_600.0
    assert credential(source, tmp_path, clock=At(end + 86_000.0)).read().reveal() == "tok"
    late = credential(source, tmp_path, clock=At(end + 86_500.0))
    with pytest.raises(CredentialRefused, match=r"already ended, at 2026-11-21T09:00:00\.000Z") as refusal:
        late.read()
    assert refusal.value.exit_code == 4
    assert anyio.run(late.renew)
