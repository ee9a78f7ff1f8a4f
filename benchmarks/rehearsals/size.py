"""What a rehearsal of a long run takes: processor time, memory, and the end that it comes to.

python -m benchmarks.rehearsals.size [ITEMS] [--reads]
"""

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

from bulk.engine.rehearsal.measured import Measured
from bulk.engine.rehearsal.model_platform import ModelBudget
from bulk.engine.rehearsal.rehearse import model_of, rehearse_all
from bulk.manifest.reading import Overrides, read_manifest


def main() -> None:
    """Rehearse that number of items, paced over hours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("items", nargs="?", type=int, default=100_000)
    parser.add_argument("--reads", action="store_true")
    given = parser.parse_args()
    write = {"owner": "acme", "message": "m", "content": "YQ=="}
    with tempfile.TemporaryDirectory(prefix="bulk-rehearse-") as name:
        folder = Path(name)
        rows = (
            {"owner": "acme", "repo": f"r{n}"} if given.reads else {**write, "repo": f"r{n // 4}", "path": f"f{n}"}
            for n in range(given.items)
        )
        (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        operation = "readme.get" if given.reads else "contents.put"
        jobs = {"items": {"operation": operation, "items": "items.jsonl"}}
        platform = {"base_url": "https://code.example.com/api/v3"}
        (folder / "manifest.yaml").write_text(json.dumps({"version": 1, "platform": platform, "jobs": jobs}))
        manifest = read_manifest(folder / "manifest.yaml", Overrides(), {})
        an_hour = max(1, given.items * (1 if given.reads else 2) // 6)
        budget = ModelBudget(limit=an_hour, seconds=3_600.0, remaining=an_hour)
        began = time.process_time()
        found = rehearse_all(
            manifest, model_of({"core": budget}, Measured(), 0.05, {}), seeds=1, assumed={}, asks=False
        )
    most_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{given.items:,} items, {sum(found.course.requests.values()):,} requests, {found.course.ends_s / 3_600:.2f} h "
        f"in {time.process_time() - began:.1f} s of processor time and {most_mb:.0f} MB"
    )


if __name__ == "__main__":
    main()
