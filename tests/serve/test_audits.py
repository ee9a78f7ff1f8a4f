"""Pages of audits: what they say against what the nights found, real nights too."""

import datetime
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulk.audit import audit as nights
from bulk.audit.history import History
from bulk.audit.policies.judging import FIXED, WAIVED
from bulk.clock import Clock
from bulk.serve.audits.histories import MOST_KEPT, Histories
from bulk.serve.audits.rows import AuditRows
from tests.audit.nights import ABSENT, FILES, POLICY, Nights
from tests.browser.audits import KEPT, NIGHTS, POLICIES, write_fleet
from tests.e2e.support.platform import Home, served
from tests.serve.conftest import Asker, asking


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The history of many nights, in a folder of its own."""
    return write_fleet(tmp_path_factory.mktemp("audits") / "fleet")


@pytest.fixture(scope="module")
def asker(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """Who asks a server of that folder."""
    folder = tmp_path_factory.mktemp("runs")
    with asking(folder, cache=folder / "cache", audits=(place.parent,)) as asker:
        yield asker


def test_an_audit_is_told_over_time(asker: Asker, place: Path) -> None:
    """Its nights, its policies night by night, what waivers cover, and the run that is still there."""
    history = History.open(place)
    (row,) = asker.get("/audits").data
    last = history.nights[-1]
    assert (row["name"], row["nights"], row["last"]["run"], row["why"]) == ("fleet", NIGHTS, last.run, "")
    assert row["trend"] == [each.new + each.known if each.is_good else None for each in history.nights]
    page = asker.get("/audits/fleet").data
    assert [each["run"] for each in page["nights"]] == [each.run for each in reversed(history.nights)]
    assert len(page["judged"]) == KEPT - 1  # one was not compared
    found = nights.kept(history, last.run).judgement
    open_ = Counter(each.severity for each in found.violations if each.status not in (FIXED, WAIVED))
    assert {severity: counts[-1] for severity, counts in page["severities"].items()} == open_
    assert sum(counts[-1] for counts in page["severities"].values()) == last.new + last.known
    assert {each["now"]["name"] for each in page["policies"]} == {policy for policy, _, _ in POLICIES}
    assert [each["violations"] for each in page["waivers"]] == [last.waived]
    assert list(page["runs"]) == [last.run]
    name = page["runs"][last.run]
    assert asker.get(f"/runs/{name}").data["run"]["run_dir"] == str(place / "runs" / last.run)
    assert asker.get("/runs").data["total"] == 0, "a night that counts is found through its audit"


def test_an_audit_is_told_to_collectors(asker: Asker, place: Path) -> None:
    """When its last night was compared, and what it found; names as they are, and nothing that grows."""
    last = History.open(place).nights[-1]
    text = asker.send("GET", "/metrics", {"Authorization": f"Bearer {asker.served.metrics_key}"}).body.decode()
    told = {
        line.partition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith("bulk_audit")
    }
    at = datetime.datetime.fromisoformat(last.at).timestamp()
    assert told['bulk_audit_compared_timestamp_seconds{audit="fleet"}'] == at
    assert told['bulk_audit_violations{audit="fleet",status="new"}'] == last.new
    assert told['bulk_audit_exit_code{audit="fleet"}'] == last.exit_code == 7


def test_what_is_violated_is_filtered_and_searched(asker: Asker, place: Path) -> None:
    """Of the last night or another one, in pages that together are all."""
    history = History.open(place)
    found = nights.kept(history, history.nights[-1].run).judgement.violations
    path = "/audits/fleet/violations"
    rows = [row for first in (0, 100, 200) for row in asker.get(f"{path}?first={first}").data["rows"]]
    assert len(rows) == len(found) > 100
    assert {row["fingerprint"] for row in rows} == {each.fingerprint for each in found}
    assert [row["status"] == FIXED for row in rows] == sorted(row["status"] == FIXED for row in rows)
    page = asker.get(f"{path}?policy=owners&status=new&q=TEAM-3").data
    wanted = [each for each in found if (each.policy, each.status) == ("owners", "new") and "team-3/" in each.message]
    assert page["fitting"] == len(wanted) > 0
    assert {row["first_seen"] for row in page["rows"]} == {each.first_seen for each in wanted}
    earlier = history.good()[-3].run
    assert asker.get(f"{path}?night={earlier}").data["total"] == len(nights.kept(history, earlier).judgement.violations)
    gone = asker.get(f"{path}?night=..%2F..%2Fx").data
    assert (gone["rows"], gone["is_cut"]) == ([], False)


def test_changes_say_when_a_value_was_seen_first_and_last(asker: Asker, place: Path) -> None:
    """A later change of the same field ends the time of the earlier value; the newest one is still so."""
    rows, first = list[dict[str, str | None]](), 0
    while True:
        page = asker.get(f"/audits/fleet/changes?first={first}").data
        rows += page["rows"]
        first += 100
        if first >= page["fitting"]:
            break
    history = History.open(place)
    assert len(rows) == sum(each.changes for each in history.good()[-KEPT + 1 :])
    assert rows == sorted(rows, key=lambda row: str(row["first_seen"]), reverse=True)
    seen = set[str | None]()
    for row in rows:
        assert (row["last_seen"] is None) == (row["label"] not in seen)
        seen.add(row["label"])
    night = history.nights[-1]
    only = asker.get(f"/audits/fleet/changes?night={night.run}&q=new.EXAMPLE").data
    assert (only["fitting"], only["night"]) == (night.changes, night.run)


def test_nights_that_there_are_not_are_not_kept(place: Path) -> None:
    """Whoever asks for other nights again and again fills no memory, and pushes nothing out of it."""
    histories = Histories((place.parent,), Clock())
    rows, audit = AuditRows(histories), histories.find("fleet")
    assert audit is not None
    last = rows.violations(audit, "", {}, "", 0)
    kept = set(histories._kept)
    for number in range(2 * MOST_KEPT):
        page = rows.violations(audit, f"night-{number}", {}, "", 0)
        assert (page.rows, page.is_cut, page.nights) == ([], False, last.nights)
    assert set(histories._kept) == kept
    assert rows.violations(audit, last.night, {}, "", 0) == last


def test_nothing_else_is_opened(asker: Asker, place: Path, tmp_path: Path) -> None:
    """Names are looked up, and never become paths; a damaged history is named and hides no other."""
    for path in ("/audits/nobody", "/audits/..%2Ffleet", "/audits/nobody/changes", "/audits/fleet/changes?first=-1"):
        assert asker.get(path).status == 404, path
    for name in ("audit:fleet:..", "audit:fleet:..%2F..", "audit:nobody:x", "audit:"):
        assert asker.get(f"/runs/{name}").status == 404, name
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "audit.json").write_text('{"version": 1, "name":')
    with asking(place, cache=tmp_path / "cache", audits=(place, tmp_path)) as own:
        found = {row["name"]: row["why"] for row in own.get("/audits").data}
        assert (found["fleet"], "damaged" in found["2:broken"]) == ("", True)
        assert own.get("/audits/2:broken").status == 404


@pytest.mark.soak
def test_real_nights_are_shown(tmp_path: Path) -> None:
    """Two nights that `bulk audit` made: a violation that is new, then known; a change, with its values."""
    with served(tmp_path / "sandbox") as sandbox:
        audit = Nights(Home(tmp_path), sandbox, [*FILES, ABSENT])
        (tmp_path / "owners.sql").write_text(POLICY)
        audit.write(policies=["owners.sql"])
        assert audit.result()[0] == 7
        audit.put(FILES[0], "Changed in the night.\n")
        assert audit.result()[0] == 7
    with asking(tmp_path / "runs", cache=tmp_path / "cache", audits=(tmp_path / "audits",)) as asker:
        page = asker.get("/audits/files").data
        assert [night["known"] for night in page["nights"]] == [1, 0]
        assert page["policies"][0]["trend"] == [1, 1]
        assert len(page["runs"]) == 2
        (row,) = asker.get("/audits/files/violations").data["rows"]
        assert (row["status"], row["first_seen"] < row["last_seen"]) == ("known", True)
        fields = {row["field"]: row for row in asker.get("/audits/files/changes").data["rows"]}
        assert fields["result.sha"]["old"] != fields["result.sha"]["new"]
