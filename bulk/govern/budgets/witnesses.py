"""A witness: one source of numbers about a bucket, and how often it was found to be wrong. Data, and sums over counts.

A platform speaks of a budget in two places, the X-RateLimit headers of answers and `GET /rate_limit`. Each can be late,
frozen or nonsense, so each is kept apart, and no single one of them is believed against what requests have shown.
"""

from dataclasses import dataclass

NEVER = 1 << 60
"""A count that is never reached."""
MOST_RAISED = 1
"""How often in a window requests lost on the way explain that a witness contradicts itself and the other one."""


@dataclass(slots=True)
class Witness:
    """One source of numbers about one bucket. Counts are on the scale of `Bucket.paid`.

    Attributes:
        reset_at: end of the window that it named last (UTC epoch seconds, platform time); 0.0: none that still counts.
        limit: requests in a window, as it named them last (count); 0: it has named none.
        ceiling: value of `Bucket.paid` at which nothing is left, by its lowest word of this window.
        latest, newest: the same by its newest word; for `newest`, less the requests that it may not have counted.
        said: `latest` when the probe that is under way was let out.
        heard_at: when it spoke last (UTC epoch seconds, platform time).
        moved: value of `Bucket.paid` when it first named a later window before this one was over; negative: it did not.
        too_little: how often a request was answered after it had said that nothing is left (count).
        too_much: how often a request was refused where it had said that something is left (count).
        named_at: when it first named that end (UTC epoch seconds, platform time).
        raised: how often its newest word of this window was believed against an earlier one (count).
        is_vague: it has not said that anything was spent of the window with that end. Where windows begin with their
            first request, such an end is only the end that a window would have if it began now.
    """

    reset_at: float = 0.0
    limit: int = 0
    ceiling: int = NEVER
    latest: int = NEVER
    said: int = NEVER
    newest: int = NEVER
    heard_at: float = 0.0
    moved: int = -1
    named_at: float = 0.0
    too_little: int = 0
    too_much: int = 0
    is_vague: bool = False
    raised: int = 0

    @property
    def is_blamed(self) -> bool:
        """Whether the witness was found to be wrong."""
        return self.too_little > 0 or self.too_much > 0

    def say(self, paid: int, remaining: int, overlap: int, now: float) -> None:
        """Note that the witness named `remaining` requests, and may not have counted `overlap` of the `paid` ones."""
        self.heard_at = now
        self.latest, self.newest = paid + remaining, paid + max(0, remaining - overlap)
        self.ceiling = min(self.ceiling, paid + remaining)

    def name_end(self, reset_at: float, jitter_s: float, is_full: bool) -> None:
        """Note that the witness named the end of a window; `is_full`: nothing was spent of that window yet, it says."""
        if abs(reset_at - self.reset_at) <= jitter_s:
            self.reset_at = max(reset_at, self.reset_at)
            self.is_vague = self.is_vague and is_full
        else:
            self.reset_at, self.is_vague, self.named_at = reset_at, is_full, self.heard_at

    def left(self, paid: int) -> int:
        """Return the number of requests left by its newest word alone; 0 if it has not spoken of this window."""
        return self.newest - paid if self.newest != NEVER else 0

    def forget(self) -> None:
        """Forget the window that the witness spoke of, which is over."""
        self.reset_at, self.moved, self.is_vague, self.raised = 0.0, -1, False, 0
        self.ceiling = self.latest = self.newest = NEVER

    def has_counted(self, paid: int, own: int) -> bool:
        """Return whether by its newest word at least `own` of the `paid` requests were spent in this window."""
        return self.latest != NEVER and self.limit - (self.latest - paid) >= own

    def was_too_low(self, before: int, other: "Witness", own: int) -> None:
        """Note that a request was served although by the words of this witness nothing was left; they don't count.

        Args:
            before: value of `Bucket.paid` without that request.
            other: the other witness, which may have said all along that something was left.
            own: requests that count in this window, with that one (count).
        """
        if self.ceiling > before:
            return
        # the newest words of both may have been the same, and so were not wrong
        is_explained = self.raised < MOST_RAISED or self.said == other.said or not before < other.ceiling < NEVER
        # no request got lost where the other witness, which names another limit, has counted all of them
        is_explained = is_explained and (self.limit == other.limit or not other.has_counted(before + 1, own))
        if NEVER > self.said > before and is_explained:
            self.raised += 1
            self.ceiling = self.newest  # its own newest word says so too: requests got lost on the way
        else:
            self.too_little += 1
            self.ceiling = NEVER
