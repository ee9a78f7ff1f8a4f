"""The board of a run that several workers share: it says what the store says (`schedule.board.Board`)."""

from collections.abc import Sequence

from bulk.cluster.stored_waves import StoredWaves
from bulk.store import statements
from bulk.store.connections import StoreConnection

_SQL = statements.load("work")


class StoreBoard:
    """What is known of the jobs of a run; `refresh` asks.

    Attributes:
        groups: of each job by its number. waves: which ones are open, and who says so.
    """

    is_shared = True

    def __init__(self, run: int, waves: StoredWaves) -> None:
        self._run, self.waves = run, waves
        self.expects_more = True
        self.free = 0
        self.groups: list[int] = []
        self._is_over: list[bool] = []
        self._unsuccessful: list[int] = []

    def read(self, store: StoreConnection) -> Sequence[tuple[int, int, str, int]]:
        """Return what stands in the store, for `take`; blocks."""
        with store.using() as connection:
            return connection.execute(_SQL["jobs"], (self._run,)).fetchall()

    def take(self, rows: Sequence[tuple[int, int, str, int]]) -> None:
        """Say that from now on."""
        self.groups = [group for _, group, _, _ in rows]
        self._is_over = [state == "over" for _, _, state, _ in rows]
        self._unsuccessful = [items for _, _, _, items in rows]

    def is_complete(self, job: int) -> bool:
        """See `Board`."""
        return self._is_over[job]

    def unsuccessful(self, job: int) -> int:
        """See `Board`."""
        return self._unsuccessful[job]
