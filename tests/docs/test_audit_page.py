"""The how-to page on audits: every command of it is run against a sandbox, in its order."""

import re
from pathlib import Path

from tests.docs.shown import DOCS, blocks
from tests.e2e.support.platform import ADMIN, Home, served

PAGE = DOCS / "how-to" / "audit.md"
NIGHT = "fleet-20261126T023000"
DAYS = ("runs/2026-11-24", "runs/2026-11-25")


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    """A reader who writes the files and types the commands gets exit 0: what is violated is waived."""
    home = Home(tmp_path, variables={"AUDIT_TOKEN": ADMIN})
    with served(tmp_path / "sandbox") as sandbox:
        for block in blocks(PAGE):
            if block.title:
                home.write(block.title, block.text.replace("https://code.example.com/api/v3", sandbox.base_url))
        codes = {}
        for line in re.findall(r"^\$ (bulk .*)$", PAGE.read_text(), re.MULTILINE):
            nights = sorted(path.name for path in tmp_path.glob("audits/fleet/runs/*"))
            typed = line.replace(NIGHT, nights[-1]) if nights else line
            for day, night in zip(DAYS, nights, strict=False):
                typed = typed.replace(day, f"audits/fleet/runs/{night}")
            ran = home.run_typed(typed, home.environment())
            codes[line] = ran.exit_code
            assert ran.exit_code == 0, f"{typed}: {ran.err}"
    assert len(codes) == 9
    assert [code for line, code in codes.items() if line.startswith("bulk audit ")] == [0, 0]
    assert codes["bulk check audit.yaml"] == 0
    assert (tmp_path / "violations.sarif").is_file()
    assert (tmp_path / "tables" / "webhook_list.parquet").is_file()
