"""Folders whose names are any bytes: the system allows that, and one of them must hide no other run."""

import os
import shutil
from pathlib import Path
from urllib.parse import quote

from bulk.serve.metrics.metrics import CONTENT_TYPE
from tests.browser.runs import write_small
from tests.serve.conftest import asking

ODD = os.fsdecode(b"\xff\xfe odd")
SHOWN = r"\xff\xfe odd"


def test_a_run_whose_name_is_not_utf8_is_shown_among_the_others(tmp_path: Path) -> None:
    """The list, the page of each run, what is wrong with a damaged one, and the figures (failures.md row 104)."""
    runs = tmp_path / "runs"
    write_small(runs / "small")
    shutil.copytree(runs / "small", runs / ODD)
    shutil.copytree(runs / "small", runs / os.fsdecode(b"\xfd"))
    (runs / os.fsdecode(b"\xfd") / "ledger.db").write_bytes(b"")
    with asking(runs, cache=tmp_path / "cache") as asker:
        listed = asker.get("/runs").data["runs"]
        assert {row["name"]: row["state"] for row in listed} == {
            "small": "stopped", SHOWN: "stopped", r"\xfd": "damaged"
        }  # fmt: skip
        for path in ("", "/items?outcome=failed", "/plots"):
            assert asker.get(f"/runs/{quote(SHOWN)}{path}").status == 200
        refused = asker.get(f"/runs/{quote(chr(92))}xfd")
        assert (refused.status, r"\xfd/ledger.db is damaged" in refused.data["error"]) == (503, True)
        key = {"Authorization": f"Bearer {asker.served.metrics_key}"}
        figures = asker.send("GET", "/metrics", dict(key))
        assert (figures.status, figures.headers["content-type"]) == (200, CONTENT_TYPE)


def test_an_audit_whose_name_is_not_utf8_is_shown(tmp_path: Path) -> None:
    """With what is wrong with it, here that it is no history."""
    place = tmp_path / ODD
    place.mkdir()
    (place / "audit.json").write_text("{")
    with asking(tmp_path / "none", cache=tmp_path / "cache", audits=(tmp_path,)) as asker:
        (audit,) = asker.get("/audits").data
        assert (audit["name"], audit["path"]) == (SHOWN, str(tmp_path / SHOWN))
        assert audit["why"]
