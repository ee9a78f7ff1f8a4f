"""One allowance of the platform and what is left of it: pure arithmetic, no clock, no I/O.

What this run has sent in a window is certain. Everything else is the word of a witness: headers, `/rate_limit` and
refusals may be late, frozen or wrong. So within a window a word can only lower the number of requests left, and this
run never lets out more than the limit less its requests that may count in the window. Only a new window raises that
number, and any witness may open a window: by a word with a later end, or by the answer to a probe, which is a request
that is let out to find out. Where witnesses contradict each other, a probe decides, and the witness that was wrong is
believed less from then on.

Answers overtake each other, so a number that the platform names may or may not count the requests that were under way
while it was made. These requests are the `overlap`.
Source: specification, Rate limit status; design.md §4; failures.md rows 31, 32, 34.
"""

from dataclasses import dataclass, field

from bulk.govern.budgets.witnesses import NEVER, Witness

JITTER_S = 1.0
"""Platforms that compute `reset` from a remaining time are off by a second between two answers."""
SPELL_SHARE = 0.01
"""Requests that others take with pauses shorter than this share of a window count as one burst."""
LATE_S = 6.0
"""A witness may be late by this time (seconds)."""
STEADY_S = 2.0
"""A witness means the end of a window that it has named for this long (seconds)."""
CONTESTED_SHARE = 0.1
"""At most this share of a window is let out only right after a word of the platform, however much others take."""


@dataclass(slots=True)
class Bucket:
    """What is left of one category for one payer, until its reset.

    Attributes:
        limit: requests in a window (count).
        free: requests that may still be let out in this window, the reserve not taken off (count, >= 0).
        reset_at: when the window ends (UTC epoch seconds, platform time); the earliest that a witness names.
        window_s: length of the window as far as it was seen (seconds).
        reserve: left for other users of the token (count).
        window: number of windows seen.
        has_rival: others spend from the bucket too: requests that may not be counted yet are taken off each new number.
        burst: most requests that others were seen to take at once (count); `spell`: the newest, seen at `spell_at`.
        is_exhausted: the platform refused a request in this window: only a probe or a new window opens it again.
        sent: requests let out, all windows (count). `given_back` of them cost nothing.
        in_flight: requests let out and not yet answered (count).
        began: value of `paid` when this window began; requests that were under way then are counted in the window.
        ended_at: end of the window before (UTC epoch seconds). opened_at: when this one was first known.
        over: value of `paid`, less the requests under way, when this window may have ended; negative: it goes on.
        shown, asked: the witnesses for the headers and for `/rate_limit`.
        is_assumed: no witness has named the end of this window: it is as long as the one before.
        is_probing: a probe is under way. probes: probes in vain, in a row (count).
        probed_at: when the newest probe left, by the clock at that time (UTC epoch seconds). is_early: the date of its
            answer says that this was before the end of the window. vain_at: when the newest probe in vain left.
        pause_until: no probe leaves before this (UTC epoch seconds). emptied_at: since when no request is left; 0.0:
            some are left.
        lag_s: how much later than named a window was seen to end (seconds).
        moved_from: the end of this window when a witness first named a later one (UTC epoch seconds); 0.0: none has.
        turned_low: least offset of platform time over the monotonic clock by the end of the newest window, if that was
            over before the server clock said so (seconds); 0.0: it was not.
        hollow_from: number of the first window in which a probe may leave where only a word says that it is empty.
    """

    limit: int
    free: int
    reset_at: float
    window_s: float
    reserve: int = 0
    window: int = 1
    has_rival: bool = False
    burst: int = 0
    spell: int = 0
    spell_at: float = 0.0
    is_exhausted: bool = False
    sent: int = 0
    given_back: int = 0
    in_flight: int = 0
    began: int = 0
    ended_at: float = 0.0
    opened_at: float = 0.0
    over: int = -1
    shown: Witness = field(default_factory=Witness)
    asked: Witness = field(default_factory=Witness)
    first: int = NEVER
    is_assumed: bool = False
    is_probing: bool = False
    probed_at: float = 0.0
    is_early: bool = False
    probes: int = 0
    vain_at: float = 0.0
    pause_until: float = 0.0
    emptied_at: float = 0.0
    lag_s: float = 0.0
    moved_from: float = 0.0
    turned_low: float = 0.0
    hollow_from: int = 2
    hollow_step: int = 1

    def __post_init__(self) -> None:
        self.first = self.paid + self.free

    @property
    def available(self) -> int:
        """Requests that may leave now (count, >= 0)."""
        return max(0, self.free - self.reserve)

    @property
    def paid(self) -> int:
        """Requests let out that cost something as far as is known, all windows (count)."""
        return self.sent - self.given_back

    @property
    def own(self) -> int:
        """Requests of this run that count in this window, or may (count, >= 0)."""
        return max(0, self.paid - self.began)

    @property
    def is_contested(self) -> bool:
        """Whether others could take all that is left at once; then a number that is not fresh proves nothing."""
        return 0 < self.free <= self.burst

    @property
    def mark(self) -> int:
        """Mark to take before a request leaves or `/rate_limit` is asked; `overlap` is what the answer can't know."""
        return self.sent - self.in_flight

    @property
    def jitter_s(self) -> float:
        """How far two values for the same end of a window may lie apart (seconds)."""
        return JITTER_S if self.window_s > 3 * JITTER_S else 0.0

    def overlap(self, mark: int) -> int:
        """Return the number of requests that were under way at some time since `mark` was taken (>= 0)."""
        return self.sent - mark

    def reserve_one(self) -> None:
        """Take one request off before it is sent.

        Raises:
            ValueError: no request is left. The cap is hard.
        """
        if self.available <= 0:
            raise ValueError("the bucket is empty")
        self.free -= 1
        self.sent += 1
        self.in_flight += 1

    def give_back(self) -> None:
        """Give back the cost of a request that was answered 304 or never left.

        Until that was known, the request was counted in this window, whichever window it left in.
        """
        self.given_back += 1
        if not self.is_exhausted:
            self.free = min(self.free + 1, self.limit)

    def exhaust(self) -> None:
        """Note that the platform said that nothing is left in this window."""
        self.free, self.is_exhausted, self.emptied_at = 0, True, 0.0

    def pass_time(self, late: float) -> None:
        """Note that platform time is at most `late` (UTC epoch seconds).

        Requests that are under way when the window may be over may count in the next window. So this must be called
        before a request is let out, and before a request is counted as answered.
        """
        if self.over < 0 and late >= self.reset_at:
            self.over = self.paid - self.in_flight

    def counted_before(self, window: int, made_at: float) -> None:
        """Note that the answer to a request of window `window` was made by `made_at` (UTC epoch seconds)."""
        if window == self.window:
            if self.over >= 0 and made_at <= self.reset_at:
                self.over += 1
        elif window == self.window - 1 and made_at <= self.ended_at and self.began < self.paid:
            self.began += 1
            if not self.is_exhausted and not self.has_rival:
                self.settle()

    def observe(
        self,
        limit: int,
        remaining: int,
        reset_at: float | None,
        overlap: int,
        now: float,
        *,
        late: float | None = None,
        is_asked: bool = False,
    ) -> bool:
        """Take in what the platform says.

        Args:
            limit: requests in a window (count).
            remaining: requests that are left, as named (count); nonsense is clamped to 0..limit.
            reset_at: end of the window that is spoken of (UTC epoch seconds); None: no possible end is named.
            overlap: requests that `remaining` may not count (count), without the request that got the answer.
            now: platform time; `late`: the latest that platform time may be (UTC epoch seconds).
            is_asked: the numbers are from `/rate_limit`, not from a header.

        Returns:
            Whether this was the first word of a new window.
        """
        remaining = max(0, min(remaining, limit))
        late = now if late is None else late
        witness, jitter_s, emptied_at = self.asked if is_asked else self.shown, self.jitter_s, self.emptied_at
        if reset_at is None:
            reset_at, names_end = self.reset_at, False
        else:
            names_end = True
        if reset_at < self.reset_at - jitter_s and (reset_at <= late or abs(reset_at - self.ended_at) <= jitter_s):
            return False
        is_new = reset_at > self.reset_at + jitter_s and self._open_later(
            witness, limit, remaining, reset_at, overlap, now, late
        )
        is_less = remaining < self.free
        witness.limit = limit
        witness.say(self.paid, remaining, overlap, now)
        # all of it was spent longer ago than a window lasts, and still the word is that none has begun: keep the end
        is_spent = 0.0 < self.emptied_at < now - max(0.0, reset_at - now) - LATE_S
        is_held = witness.is_vague and remaining >= limit and self.own > 0 and (is_spent or late >= self.reset_at)
        is_held = is_held or (is_spent and remaining == 0)
        if names_end and not is_held:  # otherwise the witness would move the end on for ever: a probe decides
            witness.name_end(reset_at, jitter_s, remaining >= limit)
            self.agree(late)
        if is_less and not self.is_exhausted:
            self.has_rival = True
            if not is_new:
                self._taken(self.free - remaining, now)
        self.settle()
        if self.has_rival and not witness.too_little:
            self.free = min(self.free, max(0, remaining - overlap))
        if self.free <= self.reserve and not self.own:
            self.emptied_at = emptied_at  # a window that begins empty does not begin the wait for a probe anew
        return is_new

    def _open_later(
        self, witness: Witness, limit: int, remaining: int, reset_at: float, overlap: int, now: float, late: float
    ) -> bool:
        """Take in a word about a later window; return whether the word begins that window."""
        jitter_s = self.jitter_s
        is_early = late < self.reset_at and self._has_turned(witness, reset_at, remaining - overlap)
        if is_early or self._maybegin(witness, late):
            if is_early:
                self.believe_newest(reset_at)
            self.begin(self._overrules(witness) or limit, reset_at, overlap, now, late)
            return True
        if witness.moved < 0 and not witness.is_vague and abs(witness.reset_at - self.reset_at) <= jitter_s:
            witness.moved = self.paid - overlap
            self.moved_from = self.moved_from or self.reset_at
        return False

    def _maybegin(self, witness: Witness, late: float) -> bool:
        """Return whether a word of a later window is the first of a new one, or only contradicts the others."""
        if self.own == 0 and not self.is_exhausted:
            return True  # no request of this run counts yet: the window may begin as late as it likes
        if late < self.reset_at or (witness.too_little and self._overrules(witness)):
            return False
        if self.reset_at + self.jitter_s < witness.reset_at > late:
            return False  # the witness has named that end all along
        if witness.is_vague and witness.reset_at:
            return False  # the witness did not know yet that the window had begun
        if self.is_assumed:
            witness.moved = self.over  # most likely the witness names the end of the window that a probe has opened
            return False
        other = self.shown if witness is self.asked else self.asked
        return not (witness.too_much and not other.too_much and other.heard_at >= self.opened_at)

    def _has_turned(self, witness: Witness, reset_at: float, left: int) -> bool:
        """Return whether the window is over although the clock says that it is not.

        It is over if every witness that speaks of it has named its end for a while and names a later end now, with more
        requests left than this window can have.
        """
        if witness.is_blamed or left <= self.limit - self.own:
            return False
        other = self.shown if witness is self.asked else self.asked
        is_steady = not witness.is_vague and abs(witness.reset_at - self.reset_at) <= self.jitter_s
        is_steady = is_steady and witness.heard_at - witness.named_at >= STEADY_S
        agrees = abs(other.reset_at - reset_at) <= JITTER_S or (other.is_vague and other.moved >= 0)
        is_alone = other.heard_at < self.opened_at or not other.heard_at
        return (is_steady or witness.moved >= 0) and (is_alone or (agrees and not other.is_blamed))

    def believe_newest(self, reset_at: float) -> None:
        """Let only the newest word count of each witness that names the end `reset_at`.

        Its earlier words were about a window that is over.
        """
        for witness in (self.shown, self.asked):
            if witness.moved >= 0 or abs(witness.reset_at - reset_at) <= JITTER_S:
                witness.ceiling = witness.latest

    def _overrules(self, witness: Witness) -> int:
        """Return the limit that the other witness names, if `witness` was ever wrong and the other was not; else 0."""
        other = self.shown if witness is self.asked else self.asked
        return other.limit if witness.is_blamed and not other.is_blamed else 0

    def begin(self, limit: int, reset_at: float, overlap: int, now: float, late: float) -> None:
        """Begin a new window in which `overlap` requests may be counted, or more where more are known."""
        began = self.paid - max(overlap, self.in_flight) if self.over < 0 else self.over
        for witness in (self.shown, self.asked):
            if witness.moved >= 0 and not (witness.too_little and self._overrules(witness)):
                began = min(began, witness.moved)
            if witness.reset_at <= max(late, self.reset_at) + self.jitter_s:
                witness.forget()
            witness.moved = -1
        self.began, self.over, self.first = began, -1, NEVER
        self.window += 1
        self.ended_at, self.opened_at = self.reset_at, now
        if limit > 0:
            self.limit = limit
        self.reset_at, self.window_s = reset_at, max(1.0, reset_at - now)
        self.is_assumed, self.moved_from = False, 0.0
        if not self.has_rival:
            self.burst //= 2
        self.has_rival = self.is_exhausted = False
        self.spell = 0
        self.probes = self.probes if self.is_probing else 0
        self.pause_until = 0.0
        self.settle()

    def agree(self, late: float) -> None:
        """Agree on the end of the window: the earliest that the most believed witnesses name.

        Ends that lie within `jitter_s` of the earliest are the same end.
        """
        shown, asked, agreed = self.shown.reset_at, self.asked.reset_at, self.reset_at
        if not self.is_assumed and (shown == agreed or not shown) and (asked == agreed or not asked):
            return  # as for nearly every answer: no witness names another end
        both = [each for each in (self.shown, self.asked) if each.reset_at]
        good = [each for each in both if not each.is_blamed]
        ends = [each.reset_at for each in good if not (each.is_vague and self._is_surpassed(each, good, late))]
        if not ends and not self.is_assumed:
            ends = [each.reset_at for each in both if not each.too_much] or [each.reset_at for each in both]
        if not ends:
            return
        first = min(ends)
        reset_at = max(end for end in ends if end <= first + self.jitter_s)
        if late < reset_at and reset_at != self.reset_at:
            self.over = -1
        self.reset_at, self.is_assumed = reset_at, False
        if reset_at < agreed - JITTER_S:  # the length was another window's: this one is known from now on
            self.window_s, self.opened_at = max(1.0, reset_at - late), late
        elif self.opened_at:
            self.window_s = max(self.window_s, reset_at - self.opened_at)

    def _is_surpassed(self, vague: Witness, good: list[Witness], late: float) -> bool:
        """Return whether another witness knows the window that had not begun when `vague` spoke of it.

        The word of `vague` may have been a little late.
        """
        began_s = late - vague.heard_at + LATE_S
        return any(each is not vague and vague.reset_at < each.reset_at < vague.reset_at + began_s for each in good)

    def settle(self) -> None:
        """Set `free` from the words of all witnesses that are believed."""
        until = min(self.began + self.limit, self.first)
        if not self.shown.too_little:
            until = min(until, self.shown.ceiling)
        if not self.asked.too_little:
            until = min(until, self.asked.ceiling)
        self.free = 0 if self.is_exhausted else max(0, until - self.paid)
        if self.free > self.reserve:
            self.emptied_at = 0.0

    def _taken(self, count: int, now: float) -> None:
        """Note that others took at least `count` requests since the word before."""
        if now - self.spell_at > self.window_s * SPELL_SHARE:
            self.spell = 0
        self.spell, self.spell_at = self.spell + count, now
        self.burst = max(self.burst, min(self.spell, int(self.limit * CONTESTED_SHARE)))
