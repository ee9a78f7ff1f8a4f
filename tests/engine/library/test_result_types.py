"""Types of the library, as a type checker sees them: `make typed` proves the first, mypy refuses the second here."""

import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, assert_type

import bulk
from bulk_jobs.rate_limit import GetRateLimit
from bulk_jobs.readmes import GetReadme
from bulk_jobs.result_types import FileContent, Limit, Webhook
from bulk_jobs.webhooks import CreateWebhook, ListWebhooks

ROOT = Path(__file__).parents[3]

WRONG = """
import bulk
from bulk_jobs.readmes import GetReadme

def wrong() -> None:
    for outcome in bulk.map(GetReadme, [{"owner": "acme"}], base_url="https://code.example.com/api/v3"):
        outcome.result["size"]
        if outcome.result is not None:
            reveal_type(outcome.result["size"])
            outcome.result["siez"]
        outcome.outcomes
    bulk.run("manifest.yaml", reserv=1)
    bulk.Engine(concurrency="many")
"""


def test_results_have_the_type_of_their_operation() -> None:
    """With the class of an operation the result has the type that it declares, or is None; with a name it is Any."""

    def synchronous(engine: bulk.Engine) -> None:  # never called: a type checker reads it
        readmes = bulk.map(GetReadme, [])
        assert_type(readmes, Iterator[bulk.FinishedItem[FileContent | None]])
        assert_type(bulk.map("readme.get", []), Iterator[bulk.FinishedItem[Any]])
        assert_type(engine.map(ListWebhooks, []), AsyncGenerator[bulk.FinishedItem[list[Webhook] | None], None])
        assert_type(engine.map(CreateWebhook, []), AsyncGenerator[bulk.FinishedItem[Webhook | None], None])
        for limits in bulk.map(GetRateLimit, [{}]):
            assert_type(limits.result, dict[str, Limit] | None)
            assert_type(limits.outcome, bulk.OutcomeKind)
            assert_type(limits.error, bulk.ItemError | None)

    assert callable(synchronous)


def test_what_is_wrong_is_refused(tmp_path: Path) -> None:
    """mypy --strict refuses a missing look for None, a misspelled field, setting and attribute, and a wrong type."""
    program = tmp_path / "wrong.py"
    program.write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), str(program)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    lines = {int(line.split(":")[1]): line for line in told.splitlines() if re.search(r": error: |Revealed", line)}
    assert "None" in lines[7], told
    assert 'Revealed type is "int"' in lines[9] or 'Revealed type is "builtins.int"' in lines[9], told
    assert '"siez"' in lines[10], told
    assert '"outcomes"' in lines[11], told
    assert '"reserv"' in lines[12], told
    assert '"concurrency"' in lines[13] or "int" in lines[13], told
