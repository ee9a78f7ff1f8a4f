"""Which runs a worker leaves alone for a while, because it could not work on them. Pure."""

AGAIN_S = 30.0
"""So long it leaves a run alone that it can't work on, and no run for longer (seconds)."""

SOON_S = 1.0
"""The same the first time where store or platform were out of reach; each time that follows it is twice as long."""


class LeftAlone:
    """Runs by their numbers; moments are monotonic seconds."""

    def __init__(self) -> None:
        self._last_s: dict[int, float] = {}
        self._until: dict[int, float] = {}

    def leave(self, run: int, first_s: float, now: float) -> None:
        """Leave it alone from now on, for `first_s` seconds the first time since it `went` well."""
        last_s = self._last_s.get(run)
        self._last_s[run] = min(AGAIN_S, first_s if last_s is None else 2.0 * last_s)
        self._until[run] = now + self._last_s[run]

    def went(self, run: int) -> None:
        """Note that it could be worked on."""
        self._last_s.pop(run, None)
        self._until.pop(run, None)

    def has(self, run: int, now: float) -> bool:
        """Return whether it is left alone now."""
        return now < self._until.get(run, now)
