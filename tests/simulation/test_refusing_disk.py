"""A disk that takes no more: what ended in memory alone has not ended, and the run says so."""

from pathlib import Path

from tests.simulation.schedules import readmes
from tests.simulation.wire.troubles import RefusingDisk
from tests.simulation.world import simulate, world

ROUNDS = 41
"""A group is tried again every quarter of a second for ten; after that, only how it ended is left to write."""
COUNT = 12


def test_a_disk_that_is_full_at_the_end_leaves_the_last_items_to_a_resume(folder: Path) -> None:
    """failures.md row 47: all items were answered and the last outcomes can't be written: exit 3 with the reason, none
    of them is told, and the same command again ends them."""

    async def main() -> None:
        async with world(folder, latency_ms=100.0) as made:
            made.disk = RefusingDisk([(0.25, ROUNDS)])  # one was answered, the others are in flight
            manifest = made.write("run", {"readmes": {"operation": "readme.get", "items": readmes(COUNT)}})
            report = await made.run(manifest)
            answered = [each for each in made.network.exchanges if each.status == 200 and "readme" in each.path]
            was_told = len(made.told_items)
            again = await made.run(manifest)
        left = report.left or 0
        outcome = (len(answered), report.exit_code, report.state, "full" in report.why, was_told + left)
        assert outcome == (COUNT, 3, "stopped", True, COUNT)
        assert left > 0
        assert (again.exit_code, again.left) == (0, 0)

    simulate(main)
