"""What waves take: the CPU time of writes in waves of the same without, each the whole command, against a sandbox.

    python -m benchmarks.needs.waves [ITEMS]

Each item makes a file in a repository of its own or of few others. Both ways run in turns, so that a machine that gets
slower meanwhile slows both.
"""

import base64
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.harness.measuring import SERVER_CORE, cost_of, environment, on_core, ratios, row

ITEMS, REPOSITORIES, TURNS = 3_000, 500, 3
MOST = 1.05
TOKEN = "sbx-site-admin"
WAVES = [1, "1%", "10%", "rest"]


def cpu_s(items: int, waves: list[Any]) -> float:
    """The CPU time of the command (seconds)."""
    with tempfile.TemporaryDirectory(prefix="bulk-bench-") as name:
        folder = Path(name)
        fleet = {"organization": "acme-fleet", "count": REPOSITORIES, "readme_bytes": 100}
        (folder / "seed.json").write_text(json.dumps({"repositories": fleet}))
        command = [sys.executable, "-m", "bulk", "sandbox", "--quiet", "--rate-limit", "off", "--state"]
        command += [str(folder / "state"), "--seed-data", str(folder / "seed.json")]
        with (
            on_core(SERVER_CORE),
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process,
        ):
            assert process.stdout is not None
            try:
                write_manifest(folder, process.stdout.readline().strip(), items, waves)
                run = [sys.executable, "-m", "bulk", "run", str(folder / "manifest.yaml"), "--run-dir"]
                return cost_of(
                    [*run, str(folder / "run"), "--no-cache", "--progress", "none"], environ={"BULK_TOKEN": TOKEN}
                ).cpu_s
            finally:
                process.kill()


def write_manifest(folder: Path, base_url: str, items: int, waves: list[Any]) -> None:
    """New files, one behind the other in each repository."""
    content = base64.b64encode(b"ours\n").decode()
    with (folder / "items.jsonl").open("w") as file:
        for number in range(items):
            item = {"owner": "acme-fleet", "repo": f"repo-{number % REPOSITORIES:05d}", "path": f"f{number}.txt"}
            file.write(json.dumps({**item, "message": "m", "content": content}) + "\n")
    job = {"operation": "contents.put", "items": "items.jsonl"}
    limits = {"waves": waves} if waves else {}
    head = {"version": 1, "platform": {"base_url": base_url}, "limits": limits, "jobs": {"files": job}}
    (folder / "manifest.yaml").write_text(json.dumps(head))


def main() -> None:
    """Measure, tell."""
    items = int(sys.argv[1].replace("_", "")) if len(sys.argv) > 1 else ITEMS
    without = [cpu_s(items, [])]
    waved: list[float] = []
    for _ in range(TURNS):
        waved.append(cpu_s(items, WAVES))
        without.append(cpu_s(items, []))
        print(f"{items:,} items: in waves {waved[-1]:.1f} s, without {without[-1]:.1f} s", flush=True)
    found = ratios(waved, without)
    row(
        f"CPU time of {items:,} writes in {len(WAVES)} waves, of the same without",
        found.text(),
        f"at most {MOST:g}",
        found.median <= MOST,
    )


if __name__ == "__main__":
    main()
