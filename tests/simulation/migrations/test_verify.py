"""`bulk verify` finds whatever is done to the files of a run: of whole runs, resumed and retried ones."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bulk.errors import RunDirectoryError
from bulk.ledger.digests.verification import verify
from tests.simulation.schedules import OWNER, put
from tests.simulation.stage import Stage
from tests.simulation.world import FLEET

FILES, MOST = 12, 5
"""Files that each run writes, and how often each of its own is damaged in each way (counts)."""


def histories(folder: Path) -> Iterator[tuple[str, Path, Path]]:
    """A name, a run directory, and that of another run of the same manifest with other items, for each history."""
    stage = Stage(folder, seed_data=FLEET)
    try:
        for kind in ("whole", "resumed", "retried"):
            runs = []
            for other in ("", "other-"):
                items = [put(f"repo-{number:05d}", f"{other}{kind}", f"{other}{number}") for number in range(FILES)]
                items.append(put("repo-00000", "README.md", "x", mode="create"))  # fails: it is there
                jobs = {"files": {"operation": "contents.put", "items": items}, "reads": _reads()}
                manifest = stage.world.write(f"{other}{kind}", jobs)
                stage.start(lambda manifest=manifest: stage.world.run(manifest))  # type: ignore[misc]
                if kind == "resumed":
                    stage.pass_turns(80)
                    assert stage.is_running, "it was to be killed half-way"
                    stage.kill(stage.world.run_dir(manifest), 0.005)
                    stage.start(lambda manifest=manifest: stage.world.run(manifest))  # type: ignore[misc]
                stage.wait_end()
                if kind == "retried":
                    stage.start(lambda manifest=manifest: stage.world.retry(manifest))  # type: ignore[misc]
                    stage.wait_end()
                runs.append(stage.world.run_dir(manifest))
            yield kind, runs[0], runs[1]
    finally:
        stage.close()


def _reads() -> dict[str, Any]:
    return {"operation": "readme.get", "items": [{"owner": OWNER, "repo": f"repo-{number:05d}"} for number in range(3)]}


def flipped(data: bytes, dice: random.Random, others: bytes) -> bytes:
    """One bit."""
    at = dice.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]


def cut(data: bytes, dice: random.Random, others: bytes) -> bytes:
    """Without its end."""
    return data[: dice.randrange(len(data))]


def grown(data: bytes, dice: random.Random, others: bytes) -> bytes:
    """With more at its end."""
    return data + dice.choice((b"\n", b"\0", data[-40:], others[-40:]))


def without_a_line(data: bytes, dice: random.Random, others: bytes) -> bytes:
    """One line is gone."""
    lines = data.splitlines(keepends=True)
    del lines[dice.randrange(len(lines))]
    return b"".join(lines)


def with_swapped_lines(data: bytes, dice: random.Random, others: bytes) -> bytes:
    """Two lines stand in each other's place."""
    lines = data.splitlines(keepends=True)
    first, second = dice.randrange(len(lines)), dice.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"".join(lines)


def with_a_line_twice(data: bytes, dice: random.Random, others: bytes) -> bytes:
    """One line is there twice, or instead of another one."""
    lines = data.splitlines(keepends=True)
    lines.insert(dice.randrange(len(lines)), dice.choice(lines))
    return b"".join(lines)


def with_a_line_of_the_other(data: bytes, dice: random.Random, others: bytes) -> bytes:
    """A line of the other run stands where one of this run's did."""
    lines = data.splitlines(keepends=True)
    lines[dice.randrange(len(lines))] = dice.choice(others.splitlines(keepends=True))
    return b"".join(lines)


def replaced(data: bytes, dice: random.Random, others: bytes) -> bytes:
    """The other run's file."""
    return others


WAYS: tuple[Callable[[bytes, random.Random, bytes], bytes], ...] = (
    flipped,
    cut,
    grown,
    without_a_line,
    with_swapped_lines,
    with_a_line_twice,
    with_a_line_of_the_other,
    replaced,
)


def damage(folder: Path, most: int, seed: int) -> int:
    """Damage every file of every history in every way, one at a time; each is found; how many there were."""
    dice, count = random.Random(seed), 0
    for kind, run_dir, other in histories(folder):
        assert verify(run_dir).flaws == (), kind
        for path in sorted(run_dir.rglob("*")):
            if not path.is_file() or path.stat().st_size == 0:
                continue
            data, others = path.read_bytes(), (other / path.relative_to(run_dir)).read_bytes()
            for way in WAYS:
                for _ in range(most):
                    changed = way(data, dice, others)
                    if changed == data:
                        continue
                    path.write_bytes(changed)
                    assert is_found(run_dir), f"{kind}: {path.relative_to(run_dir)} {way.__name__}"
                    count += 1
            path.unlink()
            # without its digests it looks as if it had been killed, and that is said
            is_told = is_found(run_dir) or (path.name == "digests.json" and not verify(run_dir).is_ended)
            assert is_told, f"{kind}: {path.relative_to(run_dir)} is gone"
            path.write_bytes(data)
        assert verify(run_dir).flaws == (), kind
        _both_runs_mixed(run_dir, other, dice, folder / f"{kind}-mixed")
    return count


def _both_runs_mixed(run_dir: Path, other: Path, dice: random.Random, mixed: Path) -> None:
    """Some files of one run and some of the other: also with the digests that belong to most of them."""
    names = sorted(path.name for path in run_dir.iterdir() if path.is_file())
    differing = [name for name in names if (run_dir / name).read_bytes() != (other / name).read_bytes()]
    for _ in range(10):
        chosen = dice.sample(differing, dice.randrange(1, len(differing)))
        shutil.copytree(run_dir, mixed)
        for name in chosen:
            shutil.copyfile(other / name, mixed / name)
        assert is_found(mixed), f"{run_dir.name} with {', '.join(chosen)} of {other.name}"
        shutil.rmtree(mixed)


def is_found(run_dir: Path) -> bool:
    """Whether something is found, or the directory is none any more."""
    try:
        return bool(verify(run_dir).flaws)
    except RunDirectoryError:
        return True


def test_whatever_is_done_to_a_run_is_found(folder: Path, figure: Callable[[str], None]) -> None:
    """Flipped bytes, cut and grown files, lines removed, swapped, doubled and of another run, other runs' files."""
    figure(f"{damage(folder, MOST, 1):,} damages in every file of three runs: all found")


@pytest.mark.soak
def test_whatever_is_done_to_a_run_is_found_for_long(folder: Path) -> None:
    """The same a hundred times as often."""
    damage(folder, 100 * MOST, 2)
