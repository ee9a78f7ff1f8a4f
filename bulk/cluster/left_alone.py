"""Which runs a worker leaves alone for a while, because it could not work on them. Pure."""

AGAIN_S = 30.0
"""How long a worker leaves a run alone that it can't work on; no run is left alone for longer (seconds)."""

SOON_S = 1.0
"""How long a worker leaves a run alone the first time that the store or the platform was out of reach (seconds); each
time that follows is twice as long."""


class LeftAlone:
    """The runs that a worker leaves alone, by their numbers; moments are monotonic seconds."""

    def __init__(self) -> None:
        self._last_s: dict[int, float] = {}
        self._until: dict[int, float] = {}

    def leave(self, run: int, first_s: float, now: float) -> None:
        """Leave a run alone from now on.

        Args:
            first_s: for how long, if this is the first time since `went` (seconds); it doubles each time after that.
        """
        last_s = self._last_s.get(run)
        self._last_s[run] = min(AGAIN_S, first_s if last_s is None else 2.0 * last_s)
        self._until[run] = now + self._last_s[run]

    def went(self, run: int) -> None:
        """Note that the run could be worked on."""
        self._last_s.pop(run, None)
        self._until.pop(run, None)

    def has(self, run: int, now: float) -> bool:
        """Return whether the run is left alone now."""
        return now < self._until.get(run, now)
