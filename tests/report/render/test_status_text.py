"""`bulk status` tells another process's run as it is: running, stopped, lost or complete; stale words are marked."""

import json

import pytest

from bulk.report.render import status_data, status_text
from bulk.report.render.formatting import moment
from bulk.report.render.json_data import as_data
from bulk.report.render.terminal import UNLIMITED, width
from bulk.status import Wait
from tests.report.ledgers import START, bucket, finished, job_status, status


def test_a_running_run(new_run):
    """While it runs, its jobs, rate, buckets and waits are shown as its process last said, with the process."""
    run = new_run(readmes=100, later=5)
    said = status(
        START + 9,
        jobs=(job_status(), job_status("later", state="waiting", waits_for=("readmes",), outcomes={}, items=5)),
        buckets=(bucket(reset_at=START + 99, waiting=3, reserve=500),),
        waits=tuple(Wait(f"lane acme/r{number}", None, 1) for number in range(20)),
        per_second=8.3,
        in_flight=3,
        concurrency=64,
        requests=12,
        finish_at=START + 500,
    )
    with run.open() as ledger:
        ledger.commit([run.record(finished(0))], said)
        shown = status_text.render(run.view, now=START + 10)
        data = as_data(status_data.data(run.view, now=START + 10))
    assert "running, process" in shown
    assert "1 of 105 (1%) items: 1 succeeded." in shown
    assert "waits for readmes" in shown
    assert "8.3/s · 3 of 64 in flight · 12 requests · done about" in shown
    assert "2,000 of 5,000 left  resets" in shown
    assert "waiting: 12 other things" in shown
    assert "Go on" not in shown
    assert (data["state"], data["exit_code"], data["is_stale"], data["left"]) == ("running", None, False, 104)
    assert data["status"]["per_second"] == 8.3


def test_stale_words_are_marked(new_run):
    """A process that lives and says nothing for a while may be stuck: its status is marked with its age."""
    run = new_run(readmes=3)
    with run.open() as ledger:
        ledger.commit([], status(START + 5))
        assert "It last reported 1 min 55 s ago" in status_text.render(run.view, now=START + 120)
        assert status_data.data(run.view, now=START + 120).is_stale is True
        assert "last reported" not in status_text.render(run.view, now=START + 8)


@pytest.mark.parametrize(
    ("exit_code", "why", "said", "code"),
    [
        (3, "time limit", "stopped early: time limit (exit 3)", 3),
        (130, "interrupted by SIGINT", "stopped early: interrupted by SIGINT (exit 130)", 130),
        (None, "", "ended unexpectedly: it was killed, or the machine stopped (exit 3)", 3),
    ],
)
def test_a_run_with_work_left(new_run, exit_code, why, said, code):
    """What was stopped or killed says so, and how to go on."""
    run = new_run(readmes=3)
    view = run.epoch([finished(0), finished(1, "failed")], exit_code=exit_code, why=why)
    shown = status_text.render(view, now=START + 50)
    assert said in " ".join(shown.split())
    assert "2/3  1 succeeded, 1 failed" in shown
    assert shown.rstrip().endswith(f"bulk resume {run.run_dir}")
    data = as_data(status_data.data(view, now=START + 50))
    assert (data["exit_code"], data["left"], data["epoch"]["exit_code"]) == (code, 1, exit_code)
    json.dumps(data)


def test_a_complete_run(new_run):
    """A complete run has its exit code's meaning, and nothing to go on with where all went well."""
    view = new_run(readmes=1).epoch([finished(0)])
    shown = status_text.render(view, now=START + 50)
    assert "complete: every item succeeded or was unchanged (exit 0)" in shown
    assert "Go on" not in shown


def test_hostile_names_are_safe(new_run):
    """Names of runs, jobs and waits can't act on the terminal (failures.md row 66)."""
    hostile = "\x1b[2J\u202ex\ny"
    run = new_run()
    run.jobs = {hostile: 3}
    with run.open(name=hostile) as ledger:
        said = status(START, waits=(Wait(hostile),), buckets=(bucket(hostile, closed_because=hostile),))
        ledger.commit([run.record(finished(0, "failed", hostile))], said)
        shown = status_text.render(run.view, now=START + 1)
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert "waiting: x y" in shown


def test_buckets_as_a_table():
    """Every bucket has lines that fit, nothing cut but a name; without limits that is said."""
    found = [
        bucket(reset_at=START + 99, reserve=500),
        bucket("scim", credential="admin", limit=None, remaining=None),
        bucket("x" * 40, remaining=-3, closed_because="used up", opens_at=1e300),
    ]
    wide = status_text.buckets(found, now=START, columns=UNLIMITED).splitlines()
    assert [line.split("  ")[0] for line in wide] == ["default/core", "admin/scim", f"default/{'x' * 40}"]
    narrow = status_text.buckets(found, now=START).splitlines()
    assert all(width(line) <= 80 for line in narrow)
    assert "500 kept in reserve" in narrow[1]
    shown = status_text.buckets([*found[:2], bucket(remaining=-3)], now=START).splitlines()
    assert [line.split("  ")[0] for line in shown[:2]] == ["default/core", "admin/scim"]
    assert "2,000 of 5,000 left  resets" in shown[0]
    assert "no limit" in shown[1]
    assert "0 of 5,000 left" in shown[2]
    own = bucket(remaining=0, closed_because="bucket core", opens_at=START + 60)
    assert f"used up until {moment(START + 60, START)}" in status_text.buckets([own], now=START)
    assert all(width(line) <= 80 for line in shown)
    assert status_text.buckets([], now=START) == "The platform limits nothing.\n"
    data = as_data(status_data.buckets(found))
    assert (data[0]["reset_at"], data[1]["limit"], data[2]["reset_at"]) == ("2026-11-21T08:01:39.000Z", None, None)
