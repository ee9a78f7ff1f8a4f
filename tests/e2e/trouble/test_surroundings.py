"""What surrounds a run: certificates, proxies, open files, full disks, modes of files, base URLs."""

import contextlib
import datetime
import http.client
import json
import stat
import subprocess
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme

from tests.e2e.support.judging import effects
from tests.e2e.support.platform import BULK, Home, served
from tests.e2e.support.programs import canned

FLEET = {"organization": "acme-fleet", "count": 1_000, "readme_bytes": 3_000}
COMMAND = ("run", "manifest.yaml", "--run-dir", "run")
GOES_ON = "bulk resume run"


def readmes(count: int, **fields: Any) -> dict[str, Any]:
    """A job of `count` reads."""
    items = [{"owner": "acme-fleet", "repo": f"repo-{number:05d}"} for number in range(count)]
    return {"readmes": {"operation": "readme.get", "items": items, **fields}}


def within(shell: str, *arguments: str) -> list[str]:
    """The command after some words of the shell, such as `ulimit`."""
    return ["/bin/sh", "-c", f'{shell}; exec "$@"', "sh", *BULK, *arguments]


@pytest.mark.parametrize(
    ("name", "expired"), [("127.0.0.1", False), ("other.example", False), ("127.0.0.1", True)],
    ids=["unknown CA", "another name", "expired"],
)  # fmt: skip
def test_a_certificate_that_is_refused_stops_at_once(name: str, expired: bool, tmp_path: Path) -> None:
    """An untrusted certificate: exit 3 at once, nothing sent, and the way to mend it (failures.md row 3)."""
    home, authority = Home(tmp_path), trustme.CA()
    end = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) if expired else None
    authority.issue_cert(name, not_after=end).private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    is_known = expired or name != "127.0.0.1"
    with canned("--log", str(tmp_path / "log"), "--certificate", str(tmp_path / "server.pem")) as base_url:
        platform = {"base_url": base_url, **({"ca_bundle": "ca.pem"} if is_known else {})}
        home.manifest(base_url, readmes(5), platform=platform)
        ran = home.run(*COMMAND, timeout_s=20)
        log = (tmp_path / "log").read_text()
    assert ran.exit_code == 3, ran.err
    assert "certificate" in ran.err
    assert is_known or "ca_bundle" in ran.err
    assert ran.err.splitlines()[-1] == GOES_ON
    assert log == ""
    assert home.results("run") == []


def test_a_private_authority_is_trusted_when_named(tmp_path: Path) -> None:
    """With `platform.ca_bundle` the certificate of a private authority is taken (failures.md row 3)."""
    home, authority = Home(tmp_path), trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with canned("--certificate", str(tmp_path / "server.pem")) as base_url:
        home.manifest(base_url, readmes(5), platform={"base_url": base_url, "ca_bundle": "ca.pem"})
        ran = home.run(*COMMAND)
    assert ran.exit_code == 0, ran.err
    assert len(home.results("run")) == 5


def test_proxies_and_netrc_of_the_environment_are_ignored(tmp_path: Path) -> None:
    """Neither a proxy variable nor a .netrc changes where requests go and with which token (failures.md row 72)."""
    home = Home(tmp_path)
    netrc = home.write("netrc", "machine 127.0.0.1 login mallory password wrong\ndefault login x password y\n")
    netrc.chmod(0o600)
    dead = "http://user:hunter2@127.0.0.1:9"
    names = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")
    home.variables = {**dict.fromkeys(names, dead), "NETRC": str(netrc), "NO_PROXY": "", "no_proxy": ""}
    with served(tmp_path / "sandbox", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, readmes(5))
        ran = home.run(*COMMAND, "--log-level", "debug")
        users = {line["user"] for line in sandbox.journal()}
    assert ran.exit_code == 0, ran.err
    assert users == {"octoadmin"}
    assert "hunter2" not in ran.err + ran.out


def test_a_proxy_that_the_manifest_allows_is_used(tmp_path: Path) -> None:
    """With `platform.trust_env: true` the proxy variable counts, and its password is not shown (failures.md row 72)."""
    home = Home(tmp_path)
    home.variables = {"HTTP_PROXY": "http://user:hunter2@127.0.0.1:9", "NO_PROXY": "", "no_proxy": ""}
    with served(tmp_path / "sandbox", seed={"repositories": FLEET}) as sandbox:
        platform = {"base_url": sandbox.base_url, "trust_env": True}
        home.manifest(sandbox.base_url, readmes(5), platform=platform, limits={"unreachable": "1s"})
        ran = home.run(*COMMAND, "--log-level", "debug")
        assert sandbox.journal() == []
    assert ran.exit_code == 3, ran.err
    assert "hunter2" not in ran.err + ran.out


def test_a_proxy_that_sets_long_cookies_hides_no_platform(tmp_path: Path) -> None:
    """A cookie of 12 KiB in every answer, that of `/rate_limit` too, costs no item (failures.md row 28)."""
    home = Home(tmp_path)
    with canned("--cookie", "12288") as base_url:
        home.manifest(base_url, readmes(5), limits={"unreachable": "2s"})
        ran = home.run(*COMMAND)
    assert ran.exit_code == 0, ran.err
    assert len(home.results("run")) == 5


def most_at_once(lines: list[dict[str, Any]]) -> int:
    """The most requests that the platform had at once (count)."""
    begun = [datetime.datetime.fromisoformat(line["at"]).timestamp() for line in lines]
    ended = [at + line["elapsed_ms"] / 1000 for at, line in zip(begun, lines, strict=True)]
    changes: list[tuple[float, int]] = sorted([(at, 1) for at in begun] + [(at, -1) for at in ended])
    return max(accumulate(change for _, change in changes))


def test_few_open_files_are_enough(tmp_path: Path, figure) -> None:
    """Where the system allows few open files, fewer requests are in flight, and nothing fails (failures.md row 51)."""
    home = Home(tmp_path)
    with served(tmp_path / "sandbox", "--latency", "30", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, readmes(150), limits={"concurrency": 200})
        ran = home.run_any(within("ulimit -n 40", *COMMAND))
        lines = sandbox.requests()
    assert ran.exit_code == 0, ran.err
    at_once = most_at_once(lines)
    figure(f"{len(lines)} requests for 150 items with 40 open files, {at_once} at once")
    assert 1 < at_once <= 10
    assert Counter(line["outcome"] for line in home.results("run")) == {"succeeded": 150}


def test_few_open_files_are_enough_for_many_jobs(tmp_path: Path, figure) -> None:
    """More jobs, each with a file of its own, than files may be open: reads, and writes that share their lanes."""
    home, jobs, count = Home(tmp_path), dict[str, Any](), 60
    for number in range(count):
        read = {"owner": "acme-fleet", "repo": f"repo-{number:05d}"}
        writes = [{"owner": "acme-fleet", "repo": f"repo-{lane:05d}"} for lane in (number, (number + 1) % count)]
        (tmp_path / f"read-{number}.jsonl").write_text(json.dumps(read) + "\n" + json.dumps({**read, "ref": "main"}))
        (tmp_path / f"write-{number}.jsonl").write_text("\n".join(map(json.dumps, writes)))
        jobs[f"read-{number}"] = {"operation": "readme.get", "items": f"read-{number}.jsonl"}
        one_file = {"path": f"{number}.txt", "message": "Write", "content": "YQ=="}
        jobs[f"write-{number}"] = {"operation": "contents.put", "items": f"write-{number}.jsonl", "with": one_file}
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, jobs)
        ran = home.run_any(within("ulimit -n 80", *COMMAND))
        made = len(effects(sandbox.requests()))
    assert ran.exit_code == 0, ran.err
    figure(f"{len(jobs)} jobs with a file each, 80 open files: {made} effects")
    assert Counter(line["outcome"] for line in home.results("run")) == {"succeeded": 4 * count}
    assert made == 2 * count


def test_the_sandbox_has_room_for_many_connections(tmp_path: Path) -> None:
    """Where the system allows few open files at first, and more on request, who rehearses gets all of its answers."""
    command = within("ulimit -S -n 64", "sandbox", "--quiet", "--state", str(tmp_path / "state"))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, contextlib.ExitStack() as held:
        try:
            assert process.stdout is not None
            url = urlsplit(process.stdout.readline().strip())
            for _ in range(120):
                connection = http.client.HTTPConnection(url.netloc, timeout=60)
                held.callback(connection.close)
                connection.request("GET", f"{url.path}/rate_limit", headers={"User-Agent": "many"})
                assert connection.getresponse().read()
        finally:
            process.terminate()


def test_a_full_disk_stops_the_run_and_space_lets_it_go_on(tmp_path: Path, figure) -> None:
    """The disk takes no more: exit 3, no write without its intent; with space the run goes on (failures.md row 47).

    The limit for the size of a file stands for the disk's: writing fails in the same places.
    """
    home, count = Home(tmp_path), 400
    organizations = [{"login": f"new-{number:03d}", "admin": "octoadmin"} for number in range(count)]
    jobs = {**readmes(count), "orgs": {"operation": "organization.create", "items": organizations}}
    command = (*COMMAND, "--no-cache")
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, jobs)
        # a tracer of its coverage would meet the limit as well
        ran = home.run_any(
            within("unset COVERAGE_PROCESS_CONFIG; export PYTHONDONTWRITEBYTECODE=1; ulimit -f 600", *command)
        )
        made, sent = len(effects(sandbox.requests())), len(sandbox.requests())
        assert ran.exit_code == 3, ran.err
        recorded = len(home.results("run"))
        again = home.run("resume", "run")
        lines = sandbox.requests()
    figure(f"stopped after {sent} requests, {made} effects and {recorded} of {2 * count} outcomes on disk")
    assert 0 < made < count
    assert 0 < recorded < 2 * count
    assert "then give the same command again" in ran.err
    assert ran.err.splitlines()[-1] == GOES_ON
    assert again.exit_code == 0, again.err
    assert Counter(effects(lines)) == {f"organization new-{number:03d} created": 1 for number in range(count)}
    results = home.results("run")
    assert Counter((line["job"], line["index"]) for line in results) == Counter(
        (job, number) for job in jobs for number in range(count)
    )
    assert {line["outcome"] for line in results} == {"succeeded"}


def test_files_of_a_run_are_private_under_any_umask(tmp_path: Path) -> None:
    """The run directory and the cache are 0700, files in them 0600, also under umask 000 (failures.md row 64)."""
    home = Home(tmp_path)
    with served(tmp_path / "sandbox", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, readmes(5, save="readmes/{owner}/{repo}.md"))
        arguments = (*COMMAND, "--cache", "kept")
        ran = home.run_any(within("umask 000", *arguments))
    assert ran.exit_code == 0, ran.err
    for folder in (tmp_path / "run", tmp_path / "kept"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
        for path in folder.rglob("*"):
            wanted = 0o700 if path.is_dir() else 0o600
            assert stat.S_IMODE(path.stat().st_mode) == wanted, path
    assert len(list((tmp_path / "run" / "saved").rglob("*.md"))) == 5


@pytest.mark.parametrize(
    ("base_url", "says"),
    [
        ("http://code.example.com/api/v3", "http:"),
        ("https://me:hunter2@code.example.com/api/v3", "user name or password"),
        ("https://code.example.com/api/../v3", "not a plain one"),
        ("ftp://code.example.com/api/v3", "https://"),
    ],
)
def test_a_base_url_that_would_leak_or_fail_is_refused(base_url: str, says: str, tmp_path: Path) -> None:
    """Plain http to another machine, a password in the URL, a wrong suffix: exit 2 (failures.md rows 73, 74)."""
    home = Home(tmp_path)
    home.manifest("http://127.0.0.1:9/api/v3", readmes(1))
    ran = home.run(*COMMAND, "--base-url", base_url)
    assert ran.exit_code == 2
    assert "--base-url" in ran.err
    assert says in ran.err
    assert "hunter2" not in ran.err
    assert not (tmp_path / "run").exists()


def test_a_base_url_is_normalized(tmp_path: Path) -> None:
    """A slash at the end and capitals in scheme or host change nothing, not even for a resume (failures.md row 74)."""
    home = Home(tmp_path)
    with served(tmp_path / "sandbox", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, readmes(4))
        first = home.run(*COMMAND, "--limit", "2")
        second = home.run(*COMMAND, "--base-url", sandbox.base_url.replace("http", "HTTP", 1) + "/")
    assert (first.exit_code, second.exit_code) == (0, 0), second.err
    assert len(home.results("run")) == 4


def test_another_host_needs_another_run(tmp_path: Path) -> None:
    """A run that was begun on one host is not resumed on another: exit 5, nothing sent there (failures.md row 80)."""
    home = Home(tmp_path)
    with (
        served(tmp_path / "one", seed={"repositories": FLEET}) as one,
        served(tmp_path / "two", seed={"repositories": FLEET}) as two,
    ):
        home.manifest(one.base_url, readmes(4))
        assert home.run(*COMMAND, "--limit", "2").exit_code == 0
        ran = home.run(*COMMAND, "--base-url", two.base_url)
        assert two.journal() == []
    assert ran.exit_code == 5, ran.err
