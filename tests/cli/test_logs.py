"""The log is for standard error alone, keeps secrets out, and does not tear a live display apart."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulk.cli import logs
from bulk.platform.auth.secrets import Secret
from tests.report.ledgers import Run, finished

TOKEN = "canary-51d27f3a9c"


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, raising = root.handlers[:], root.level, logging.raiseExceptions
    yield
    root.handlers[:], logging.raiseExceptions = handlers, raising
    root.setLevel(level)
    logging.captureWarnings(False)


@pytest.mark.parametrize("form", logs.FORMATS)
def test_no_secret_is_logged(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A secret in the message, in an argument or in a traceback is masked, in either format (failures.md row 62)."""
    Secret(TOKEN)
    logs.set_up("debug", form)
    log = logging.getLogger("bulk.sample")
    log.info("sent with %s", TOKEN)
    try:
        raise ValueError(TOKEN)
    except ValueError:
        log.exception("it broke: %s", TOKEN)
    written = capsys.readouterr().err
    assert TOKEN not in written
    assert written.count("***") >= 3
    assert "ValueError" in written


@pytest.mark.parametrize("error", [MemoryError(), OSError(24, "Too many open files")])
@pytest.mark.parametrize("form", logs.FORMATS)
def test_what_the_machine_lacks_is_told_in_a_line(
    error: Exception, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback is shown of it, and nothing of what asyncio says about its own objects."""
    logs.set_up("warning", form)
    logging.getLogger("asyncio").error("Fatal read error\nprotocol: <object at 0x7f>", exc_info=error)
    written = capsys.readouterr().err
    assert written.count("\n") == 1
    assert "Traceback" not in written
    assert "0x7f" not in written
    assert "Fatal read error: " in written
    assert "memory" in written or "Too many open files" in written


def test_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """In the format json each line is an object with time, level, logger and message, also with line breaks inside."""
    logs.set_up("info", "json")
    logging.getLogger("bulk.sample").warning("two\nlines")
    line = json.loads(capsys.readouterr().err)
    assert {**line, "at": ""} == {"at": "", "level": "warning", "logger": "bulk.sample", "message": "two\nlines"}
    assert line["at"].endswith("Z")


def test_text_is_safe_for_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """What a terminal obeys never reaches it through the log (failures.md row 66)."""
    logs.set_up("info", "text")
    logging.getLogger("bulk.sample").warning("named \x1b[31mred\nand more")
    assert capsys.readouterr().err.endswith("WARNING bulk.sample: named red and more\n")


def test_the_level_decides(capsys: pytest.CaptureFixture[str]) -> None:
    """Less serious than the level is not logged."""
    logs.set_up("warning", "text")
    logging.getLogger("bulk.sample").info("quiet")
    assert capsys.readouterr().err == ""


def test_a_live_display_gets_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """While a display owns the terminal the log's lines go through it, afterwards to standard error again."""
    logs.set_up("info", "text")
    noted: list[str] = []
    with logs.noted_by(noted.append):
        logging.getLogger("bulk.sample").warning("during")
    assert len(noted) == 1
    assert capsys.readouterr().err == ""
    logging.getLogger("bulk.sample").warning("afterwards")
    assert "afterwards" in capsys.readouterr().err


def test_a_line_says_which_item_it_is_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """While a run is driven, each line has its name, and one about an item its job and index; afterwards none has."""
    Run(tmp_path / "nightly", readmes=3, codeowners=5).epoch([finished()])
    logs.set_up("info", "json")
    log = logging.getLogger("bulk.sample")
    with logs.about_run(tmp_path / "nightly"):
        log.warning("about one", extra={"job_number": 1, "item": 4})
        log.warning("about the run")
    log.warning("about nothing")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line.get("run"), line.get("job"), line.get("item")) for line in lines] == [
        ("nightly", "codeowners", 4),
        ("nightly", None, None),
        (None, None, None),
    ]
