"""The board of a run that several workers share (`job_progress.Board`): a copy of what the store says of its jobs."""

from collections.abc import Sequence

from bulk.cluster.stored_waves import StoredWaves
from bulk.store import sql
from bulk.store.connections import StoreConnection

_SQL = sql.load("work")


class StoreBoard:
    """The state of the jobs of a run, as it was read last; `read` asks the store, and `take` sets the state.

    Attributes:
        groups: the group of each job, by the job's number. waves: the waves of the run.
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
        """Return the rows of the jobs in the store, for `take`; blocks."""
        with store.using() as connection:
            return connection.execute(_SQL["jobs"], (self._run,)).fetchall()

    def take(self, rows: Sequence[tuple[int, int, str, int]]) -> None:
        """Report the state in these rows from now on."""
        self.groups = [group for _, group, _, _ in rows]
        self._is_over = [state == "over" for _, _, state, _ in rows]
        self._unsuccessful = [items for _, _, _, items in rows]

    def is_complete(self, job: int) -> bool:
        """See `Board`."""
        return self._is_over[job]

    def unsuccessful(self, job: int) -> int:
        """See `Board`."""
        return self._unsuccessful[job]
