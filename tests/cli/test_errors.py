"""Every end of a command is a message and an exit code, never a traceback."""

import errno
import logging
import re
import stat
from pathlib import Path

import click
import pytest

from bulk import errors
from bulk.cli import errors as cli_errors
from bulk.cli.app import main
from bulk.cli.error_data import CODES, REMEDIES, of_bug, of_error, of_misuse
from bulk.exit_codes import ExitCode
from bulk.platform.auth.secrets import Secret

TOKEN = "canary-7f3a9c51d2"


def _caused(error: BaseException, cause: BaseException) -> BaseException:
    """`error` as it is raised from `cause`."""
    error.__cause__ = cause
    return error


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (errors.UsageError("no"), 2),
        (errors.ManifestError([errors.Flaw("a.yaml", 3, "jobs", "is empty")]), 2),
        (errors.CredentialMissing("BULK_TOKEN is not set"), 2),
        (errors.RunStopped("out of reach"), 3),
        (errors.CredentialRefused("default", "refused"), 4),
        (errors.RunDirectoryError("in use"), 5),
        (errors.Interrupted("SIGINT", 130), 130),
        (errors.Interrupted("SIGTERM", 143), 143),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
        (click.UsageError("no such option"), 2),
        (BrokenPipeError(), 0),
        (OSError(errno.ENOSPC, "No space left on device", "ledger.db"), 5),
        (OSError(errno.EFBIG, "File too large", "results.jsonl"), 5),
        (MemoryError(), 3),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), 3),
        (RuntimeError("can't start new thread"), 3),
        (OSError(errno.EMFILE, "Too many open files"), 3),
        (ExceptionGroup("unhandled errors", [ExceptionGroup("inner", [MemoryError()])]), 3),
        (FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"), 2),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 300), 2),
        (RuntimeError("Symlink loop from '/a/loop'"), 2),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "x"), ExitCode.BUG),
        (ZeroDivisionError("division by zero"), ExitCode.BUG),
        (_caused(click.Abort(), EOFError("EOF read where object expected")), ExitCode.BUG),
    ],
)
def test_each_error_has_its_exit_code(error: BaseException, exit_code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind of error ends the command with the code of interface.md §4, and its message names what was wrong."""
    assert cli_errors.exit_code_of(error) == exit_code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    if isinstance(error, errors.BulkError):
        assert str(error) in printed.err


def test_every_flaw_of_a_manifest_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """All flaws are printed, each on a line that begins with the file and the line to go to."""
    flaws = [errors.Flaw("items.csv", line, "path", "holds a NUL") for line in range(2, 52)]
    cli_errors.exit_code_of(errors.ManifestError(flaws, more=7))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "bulk: items.csv:2: path: holds a NUL"
    assert len(lines) == 51
    assert lines[-1] == "bulk: and 7 more"


def test_a_bug_says_where_its_traceback_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bug prints one line; its traceback is in a file of this user's alone, without the secrets of the process."""
    Secret(TOKEN)
    with pytest.raises(RuntimeError) as raised:
        raise RuntimeError(f"unexpected: {TOKEN}")
    assert cli_errors.exit_code_of(raised.value) == 70
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert "this is a bug in Bulk" in printed
    found = re.search(r"in (\S+\.txt)", printed)
    assert found is not None
    path = Path(found[1])
    assert path.parent == tmp_path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert "test_a_bug_says_where_its_traceback_is" in text
    assert TOKEN not in text + printed


def test_a_folder_that_is_gone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command in a folder that somebody has deleted meanwhile says so."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for arguments in (["status", "runs/x"], ["watch", "runs/x"], ["pause", "x"], ["plan", "a", "--live", "-o", "b"]):
        assert main(arguments) == 2
        assert "has been deleted: change into another one" in capsys.readouterr().err


def test_a_bug_is_in_the_log_at_the_level_debug(caplog: pytest.LogCaptureFixture) -> None:
    """Who asks for the level debug gets the traceback in the log as well."""
    with caplog.at_level(logging.DEBUG):
        cli_errors.exit_code_of(ValueError("odd"))
    record = caplog.records[-1]
    # where a command of this process has set up the log before, its redaction has made a text of the traceback already
    assert record.exc_info or "ValueError: odd" in (record.exc_text or "")


@pytest.mark.parametrize("exit_code", [3, 4, 70, 130, 143])
def test_where_work_is_left_the_last_line_goes_on(exit_code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """After a stop the last line on standard error is a command and nothing else."""
    cli_errors.say_how_to_go_on("bulk run a.yaml --run-dir runs/a", exit_code)
    assert capsys.readouterr().err.splitlines()[-1] == "bulk run a.yaml --run-dir runs/a"


def test_a_run_that_began_and_lacks_a_budget_goes_on_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2 of a command says that nothing began; of a run, that a budget has no room for what is left."""
    cli_errors.say_how_to_go_on("bulk resume runs/a", 2, has_begun=True)
    assert capsys.readouterr().err.splitlines()[-1] == "bulk resume runs/a"


@pytest.mark.parametrize("exit_code", [0, 1, 2, 5, 6])
def test_where_nothing_is_left_nothing_is_said(exit_code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A complete run and one that never began name no command to go on with."""
    cli_errors.say_how_to_go_on("bulk run a.yaml", exit_code)
    assert capsys.readouterr().err == ""


def test_a_hostile_message_can_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences and reordering marks in a message are dropped (failures.md row 66)."""
    cli_errors.exit_code_of(errors.RunStopped("\x1b]0;owned\x07stopped \u202egnissim"))
    printed = capsys.readouterr().err
    assert "stopped gnissim" in printed
    assert "\x1b" not in printed
    assert "\u202e" not in printed


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("is missing; expected a string", "missing"),
        ("unknown field; did you mean repo?", "unknown"),
        ("'zz': unknown job; expected one of a, b", "unknown"),
        ("${a}: unknown variable; give it a value", "unknown"),
        ("'x.csv': there is no such file", "invalid"),
        ("expected a string, got 'unknown: unknown'", "invalid"),
    ],
)
def test_a_flaw_has_its_code_whatever_it_begins_with(message: str, code: str) -> None:
    """A message may first repeat the word that nothing knows."""
    (error,) = of_error(errors.ManifestError([errors.Flaw("m.yaml", 1, "jobs.a", message)])).errors
    assert error.code == code


@pytest.mark.parametrize(
    ("error", "code", "remedy"),
    [
        (errors.UsageError("no"), "usage", REMEDIES["usage"]),
        (errors.UsageError("--cache and --no-cache: name one of them"), "usage", REMEDIES["usage"]),
        (errors.UsageError("it is there already; name another folder"), "usage", "Name another folder."),
        (errors.CredentialMissing("BULK_TOKEN is not set"), "credential_missing", REMEDIES["credential_missing"]),
        (errors.BudgetTooSmall("it leaves nothing of core"), "budget_too_small", REMEDIES["budget_too_small"]),
        (errors.RunStopped("out of reach"), "run_stopped", REMEDIES["run_stopped"]),
        (errors.CredentialRefused("default", "refused; renew it."), "credential_refused", "Renew it."),
        (errors.RunDirectoryError("in use"), "run_directory", REMEDIES["run_directory"]),
        (errors.Interrupted("SIGINT", 130), "interrupted", REMEDIES["interrupted"]),
        (errors.ManifestError([errors.Flaw("a", 3, "x", "is missing")]), "missing", REMEDIES["missing"]),
        (
            errors.ManifestError([errors.Flaw("a", 3, "x", "is missing; expected a string")]),
            "missing",
            "Add the field: expected a string.",
        ),
        (errors.ManifestError([errors.Flaw("a", 3, "x", "unknown field")]), "unknown", REMEDIES["unknown"]),
        (
            errors.ManifestError([errors.Flaw("a", 3, "x", "unknown field; did you mean y?")]),
            "unknown",
            "Did you mean y?",
        ),
        (errors.ManifestError([errors.Flaw("a", 3, "x", "'y': unknown job; expected z")]), "unknown", "Expected z."),
        (errors.ManifestError([errors.Flaw("a", 3, "x", "expected a count")]), "invalid", REMEDIES["invalid"]),
    ],
)
def test_the_way_out_is_in_words(error: errors.BulkError, code: str, remedy: str) -> None:
    """It is what the message says behind its first semicolon, as a sentence, or else that of the code."""
    (told,) = of_error(error).errors
    assert (told.code, told.remedy) == (code, remedy)


def test_each_code_has_a_way_out() -> None:
    """A sentence, for every code that an error can have."""
    assert {*REMEDIES} == {*CODES.values(), "missing", "unknown", "invalid", "bug"}
    assert all(re.fullmatch(r"[A-Z`].*\.", remedy) for remedy in REMEDIES.values())
    assert of_bug("it broke").errors[0].remedy == REMEDIES["bug"]
    assert of_misuse(click.UsageError("no such option")).errors[0].remedy == REMEDIES["usage"]
