"""How fast items are checked, and that memory does not grow with them: readme.get from JSON lines, hashing included.

    python -m benchmarks.checking [ITEMS ...]

Each size runs in a process of its own, so that its peak memory is its own. The reference is msgspec alone, which
decodes the same lines into the same type and keeps nothing.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks.harness.measuring import ROOT, environment, row
from bulk.bundle.streams import EntryStream
from bulk.check.checking import check
from bulk.manifest.reading import Overrides, read_manifest

SIZES = (10_000, 1_000_000)
LEAST_RATE = 100_000
MANIFEST = """\
version: 1
platform: {base_url: "https://code.example.com/api/v3"}
jobs:
  readmes: {operation: readme.get, items: repos.jsonl}
"""


def main() -> None:
    sizes = [int(text.replace("_", "")) for text in sys.argv[1:]] or list(SIZES)
    heads = f"{'checked/s':>10}  {'ratio':>6}  {'streamed/s':>10}  {'last left/s':>17}  {'peak MB':>8}"
    print(f"{'items':>12}  {heads}", flush=True)
    for size in sizes:
        command = [sys.executable, "-m", "benchmarks.checking", "--one", str(size)]
        subprocess.run(command, check=True, cwd=ROOT, env=environment())


def one(size: int) -> None:
    with tempfile.TemporaryDirectory(prefix="bulk-bench-") as name:
        folder = Path(name)
        (folder / "m.yaml").write_text(MANIFEST)
        with (folder / "repos.jsonl").open("w") as file:
            file.writelines(f'{{"owner":"acme-fleet","repo":"repo-{number:08}"}}\n' for number in range(size))
        manifest = read_manifest(folder / "m.yaml", Overrides(), {})
        started = time.perf_counter()
        checked = check(manifest, folder)
        checking_s = time.perf_counter() - started
        assert checked.jobs[0].items == size
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        streaming_s = _stream(EntryStream(checked, 0, folder), lambda index: index)
        skipping_s = _stream(EntryStream(checked, 0, folder), lambda index: size - 1 if index < size else size)
        reference_s = _reference(folder / "repos.jsonl", manifest.jobs[0].operation.Item)
    rates = [size / seconds for seconds in (checking_s, streaming_s, skipping_s)]
    ratio = reference_s / checking_s
    print(f"{size:12,}  {rates[0]:10,.0f}  {ratio:6.2f}  {rates[1]:10,.0f}  {rates[2]:17,.0f}  {peak_mb:8.1f}")
    if size < LEAST_RATE:  # its start would be most of it
        return
    row(
        f"checking {size:,} items",
        f"{rates[0]:,.0f} items/s ({ratio:.2f} of msgspec alone), peak {peak_mb:.0f} MB",
        f"{LEAST_RATE:,} items/s",
        rates[0] >= LEAST_RATE,
    )


def _stream(stream: EntryStream, next_left: Callable[[int], int]) -> float:
    started = time.perf_counter()
    while stream.take(64, next_left):
        pass
    return time.perf_counter() - started


def _reference(path: Path, item_type: type[msgspec.Struct]) -> float:
    decode = msgspec.json.Decoder(item_type).decode
    started = time.perf_counter()
    with path.open("rb") as file:
        for line in file:
            decode(line)
    return time.perf_counter() - started


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(int(sys.argv[2]))
    else:
        main()
