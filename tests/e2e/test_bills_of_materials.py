"""`sbom_file` as a user meets it: checked offline, sent once, and not again while nothing changed."""

import contextlib
import functools
import gzip
import json
import os
import signal
import sqlite3
import subprocess
from urllib.parse import urlsplit

import pytest

from tests.e2e.support.platform import Home, served, wait_for
from tests.jobs.shared.sboms.bills import TIME, cyclonedx_json, graph, spdx_json

ITEM = {
    "owner": "acme-eng",
    "repo": "hello-world",
    "version": 0,
    "sha": "0123456789abcdef0123456789abcdef01234567",
    "ref": "refs/heads/main",
    "detector": {"name": "scan", "version": "1.0.0", "url": "https://scan.example.com"},
}


def item(number, **more):
    """A snapshot of a file of its own."""
    return {**ITEM, "job": {"id": f"run-{number}", "correlator": f"job {chr(97 + number)}"}, **more}


@pytest.fixture
def home(tmp_path):
    """A home with three bills of materials."""
    home = Home(tmp_path)
    home.write("sboms/0.json", cyclonedx_json(graph(20, 0)))
    home.write("sboms/1.json.gz", gzip.compress(spdx_json(graph(20, 1))))
    home.write("sboms/2.json", cyclonedx_json(graph(20, 2)))
    return home


def items(job=0):
    """The three, as the job with this number sends them."""
    files = ("sboms/0.json", "sboms/1.json.gz", "sboms/2.json")
    found = [item(number, sbom_file=name) for number, name in enumerate(files)]
    return [{**each, "job": {**each["job"], "id": f"run-{job}"}} for each in found]


def test_what_was_taken_is_not_sent_again(home):
    """The second run sends nothing, the third only what changed; without a cache, and with `never`, all is sent."""
    with served(home.folder / "sandbox") as sandbox:

        def sent(**job):
            before = len(sandbox.requests(path="snapshots"))
            number = len(list(home.folder.glob("run-*")))
            jobs = {"sboms": {"operation": "snapshot.create", "items": items(number), **job}}
            home.manifest(sandbox.base_url, jobs, "sboms.yaml")
            ran = home.run("run", "sboms.yaml", "--run-dir", f"run-{number}")
            assert ran.exit_code == 0, ran.err
            return len(sandbox.requests(path="snapshots")) - before

        assert [sent(), sent()] == [3, 0]
        lines = [json.loads(line) for line in (home.folder / "run-1/results.jsonl").read_text().splitlines()]
        assert {(line["outcome"], line["attempts"]) for line in lines} == {("unchanged", 0)}
        assert "nothing was sent" in lines[0]["result"]["note"]
        home.write("sboms/2.json", cyclonedx_json(graph(20, 3)))
        assert [sent(), sent(skip_unchanged="never"), sent(resend_after=0.001)] == [1, 3, 3]
        (known,) = home.folder.glob("cache/**/sent.db")
        with contextlib.closing(sqlite3.connect(known, isolation_level=None)) as database:  # as if 2 days had passed
            database.execute("UPDATE sent SET at = at - 2 * 86400")
        assert [sent(resend_after="3d"), sent(resend_after="1d")] == [0, 3]


@pytest.mark.parametrize("way", ["inline", "never", "killed"])
def test_what_another_snapshot_has_replaced_is_sent_again(home, way):
    """Another snapshot of the same repository, correlator and detector left in between, whichever way it was made, and
    whether its answer arrived or not: the first one is no longer what the platform has."""
    first, other = item(0, sbom_file="sboms/0.json"), item(0, sbom_file="sboms/2.json")
    if way == "inline":
        other = {**item(0), "scanned": TIME, "manifests": {"m": {"name": "m"}}}
    job = {"operation": "snapshot.create", "items": [other], **({"skip_unchanged": "never"} if way == "never" else {})}
    slowly = ("--latency", "3000") if way == "killed" else ()
    with served(home.folder / "sandbox") as sandbox:
        base_url = sandbox.base_url
        home.manifest(base_url, {"s": {"operation": "snapshot.create", "items": [first]}}, "first.yaml")
        assert home.run("run", "first.yaml", "--run-dir", "one").exit_code == 0
    (known,) = home.folder.glob("cache/**/sent.db")
    port = "--port", str(urlsplit(base_url).port)
    home.manifest(base_url, {"s": job}, "other.yaml")
    with served(home.folder / "sandbox", *port, *slowly), home.running("run", "other.yaml", "--run-dir", "two") as two:
        if way == "killed":
            wait_for(lambda: not _places(known), two)
        else:
            two.communicate(timeout=60)
    with served(home.folder / "sandbox", *port) as sandbox:
        before = len(sandbox.requests(path="snapshots"))
        ran = home.run("run", "first.yaml", "--run-dir", "three")
        assert ran.exit_code == 0, ran.err
        assert len(sandbox.requests(path="snapshots")) == before + 1


def _places(known):
    """The places of which it is remembered what was sent there."""
    with contextlib.closing(sqlite3.connect(known)) as database:
        return database.execute("SELECT place FROM sent").fetchall()


def test_a_bill_that_changes_while_the_run_goes_is_not_taken_for_what_was_sent(home):
    """It was sent before and is no longer what the check has seen: it is neither `unchanged` nor sent as it was."""
    with served(home.folder / "sandbox", "--latency", "300") as sandbox:
        readme = {"operation": "readme.get", "items": [{"owner": "acme-eng", "repo": "hello-world"}]}
        sboms = {"operation": "snapshot.create", "items": items()}
        home.manifest(sandbox.base_url, {"sboms": sboms}, "first.yaml")
        assert home.run("run", "first.yaml", "--run-dir", "first").exit_code == 0
        home.manifest(sandbox.base_url, {"readme": readme, "sboms": {**sboms, "needs": ["readme"]}}, "second.yaml")
        process = home.start("run", "second.yaml", "--run-dir", "second")
        wait_for((home.folder / "second/check.json").exists, process)
        home.write("sboms/0.json", cyclonedx_json(graph(20, 3)))
        _, said = process.communicate(timeout=60)
        assert process.returncode == 1, said
        assert len(sandbox.requests(path="snapshots")) == 3
    lines = [json.loads(line) for line in (home.folder / "second/results.jsonl").read_text().splitlines()]
    found = {line["index"]: line["outcome"] for line in lines if line["job"] == "sboms"}
    assert found == {0: "failed", 1: "unchanged", 2: "unchanged"}
    assert "'sboms/0.json' has changed since it was checked" in json.dumps(lines)


def test_sizes_are_told_offline(home):
    """The check says how large the snapshots are as they are sent, and warns of those above 10 MB."""
    home.write("sboms/0.json", cyclonedx_json(graph(60_000, 0)))
    jobs = {"s": {"operation": "snapshot.create", "items": items()}}
    home.manifest("https://code.example.com/api/v3", jobs, "s.yaml")
    ran = home.run("check", "s.yaml")
    assert ran.exit_code == 0, ran.err
    assert "note: job s: what is sent of its files has 4 kB (median)" in ran.err
    assert "1 of its files are above 10 MB" in ran.err


def test_a_bill_without_a_time_is_for_items_that_give_one(home):
    """Whether a bill can be used depends on the item: one is found wanting, and those before and after it are not."""
    bill = cyclonedx_json(graph(3, 0)).replace(TIME.encode(), b"")
    home.write("sboms/2.json", bill)
    lines = [item(number, sbom_file="sboms/2.json") for number in range(3)]
    for line in (lines[0], lines[2]):
        line["scanned"] = TIME
    home.manifest("https://code.example.com/api/v3", {"s": {"operation": "snapshot.create", "items": lines}}, "s.yaml")
    ran = home.run("check", "s.yaml")
    assert ran.exit_code == 2
    assert ran.err.count("'sboms/2.json': scanned: is missing in the bill of materials; give it") == 1


def test_what_is_wrong_is_told_offline(home):
    """A bad bill, a correlator with the run's id, and two files that would overwrite each other: exit 2, all named."""
    home.write("sboms/2.json", b'{"spdxVersion": "SPDX-2.1"}')
    wrong = [
        *items()[1:],
        {**item(0, sbom_file="sboms/0.json"), "job": {"id": "run-5622", "correlator": "npm run-5622"}},
    ]
    home.manifest("https://code.example.com/api/v3", {"s": {"operation": "snapshot.create", "items": wrong}}, "s.yaml")
    ran = home.run("check", "s.yaml")
    assert ran.exit_code == 2
    assert "sbom_file: 'sboms/2.json': is SPDX-2.1; SPDX 2.2 and 2.3 can be read" in ran.err
    assert "job.correlator: holds the job's id" in ran.err
    twice = [item(0, sbom_file="sboms/0.json"), item(0, sbom_file="sboms/1.json.gz")]
    home.manifest("https://code.example.com/api/v3", {"s": {"operation": "snapshot.create", "items": twice}}, "s.yaml")
    assert "give each its own job.correlator" in home.run("check", "s.yaml").err
    jobs = {"r": {"operation": "readme.get", "items": [], "skip_unchanged": "exact"}}
    home.manifest("https://code.example.com/api/v3", jobs, "r.yaml")
    assert "readme.get does not remember what it sent; snapshot.create does" in home.run("check", "r.yaml").err


def test_a_killed_conversion_loses_and_doubles_nothing(home):
    """The process that converts is killed again and again while a run sends: each bill arrives once, all are taken."""
    count = 24
    for number in range(count):
        home.write(f"sboms/large-{number}.json", cyclonedx_json(graph(1_500, number)))
    jobs = [item(0, sbom_file=f"sboms/large-{number}.json") for number in range(count)]
    for number, each in enumerate(jobs):
        each["job"] = {"id": "run-1", "correlator": f"large {number}"}
    with served(home.folder / "sandbox", "--latency", "100") as sandbox:
        home.manifest(sandbox.base_url, {"sboms": {"operation": "snapshot.create", "items": jobs}}, "sboms.yaml")
        process = home.start("run", "sboms.yaml", "--run-dir", "run", "--concurrency", "2", "--yes")
        killed = set[int]()
        for least in range(0, 18, 3):
            wait_for(functools.partial(has_sent, sandbox, least), process)
            for pid in children(process.pid):
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        _, said = process.communicate(timeout=60)
        assert (process.returncode, len(killed) > 1) == (0, True), said
        assert len(sandbox.requests(path="snapshots")) == count
    lines = [json.loads(line) for line in (home.folder / "run/results.jsonl").read_text().splitlines()]
    assert sorted((line["index"], line["outcome"]) for line in lines) == [(n, "succeeded") for n in range(count)]


def has_sent(sandbox, least):
    """Whether `least` snapshots have arrived."""
    return len(sandbox.requests(path="snapshots")) >= least


def children(pid):
    """The processes that it has started."""
    told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(each) for each in told.stdout.split()]
