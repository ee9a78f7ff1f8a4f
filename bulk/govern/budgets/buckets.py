"""One allowance of the platform and what is left of it: pure arithmetic, no clock, no I/O.

What this run has sent in a window is certain. Everything else is a word: headers, `/rate_limit` and refusals may be
late, frozen or wrong. So within a window a word can only lower what is left, and never is more let out than the limit
less the requests of this run that may count in it. Only a new window raises it, and any witness may open that: a word
with a later end, or a request that is let out to go and see (a probe) and is answered. Where witnesses contradict each
other, a probe decides, and who was wrong is believed less from then on.

Answers overtake each other, so a number that the platform names is only good up to the requests that were under way
while it was made: those may or may not be counted in it. They are the `overlap`.
Source: specification, Rate limit status; design.md §4; failures.md rows 31, 32, 34.
"""

from dataclasses import dataclass, field

from bulk.govern.budgets.witnesses import NEVER, Witness

JITTER_S = 1.0
"""Platforms that compute `reset` from a remaining time are off by a second between two answers."""
SPELL_SHARE = 0.01
"""What others take with pauses shorter than this share of a window counts as one burst."""
LATE_S = 6.0
"""A witness may be that late (seconds)."""
STEADY_S = 2.0
"""An end that a witness has named for that long is one that it means (seconds)."""
CONTESTED_SHARE = 0.1
"""At most this share of a window is spent on fresh words alone, however much others take at once."""


@dataclass(slots=True)
class Bucket:
    """What is left of one category for one credential, until its reset.

    Attributes:
        limit: requests in a window (count).
        free: requests that may still be let out in this window, the reserve not taken off (count, >= 0).
        reset_at: when the window ends (UTC epoch seconds, platform time); the earliest that a witness names.
        window_s: length of the window as far as it was seen (seconds).
        reserve: left for other users of the token (count).
        window: number of windows seen.
        has_rival: somebody else spends from it: what may not be counted yet is taken off each new number.
        burst: most that somebody else was seen to take at once (count); `spell` is the newest, last seen at `spell_at`.
        is_exhausted: the platform refused a request in this window: only a probe or a new window opens it again.
        sent: requests let out, all windows (count). `given_back` of them cost nothing.
        in_flight: requests let out and not yet answered (count).
        began: what was paid when this window began; requests that were under way then are counted in it.
        ended_at: end of the window before (UTC epoch seconds). opened_at: when this one was first known.
        over: what was paid when this window may have ended, without what was under way; negative: it goes on.
        shown, asked: what headers say, and what `/rate_limit` says.
        is_assumed: no witness has named the end of this window: it is as long as the one before.
        is_probing: a probe is under way. probes: those in vain, in a row (count).
        probed_at: when the newest probe left, by the clock of then (UTC epoch seconds). is_early: its answer says that
            this was before the end of the window.
        pause_until: no probe before (UTC epoch seconds). emptied_at: since when nothing is left; 0.0: something is.
        lag_s: how much later than named windows were seen to end (seconds).
        moved_from: the end of this window when a witness first named a later one (UTC epoch seconds); 0.0: none has.
        turned_low: what the clock is ahead of the monotonic one at least, by the newest window, where that was over
            before this clock said so (seconds); 0.0: it was not.
        hollow_from: window from which one may look where nothing but a word says that it is empty.
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
        """Whether somebody else could take at once what is left: a number that is not fresh proves nothing then."""
        return 0 < self.free <= self.burst

    @property
    def mark(self) -> int:
        """Taken before a request leaves or `/rate_limit` is asked; `overlap` of it tells what the answer can't know."""
        return self.sent - self.in_flight

    @property
    def jitter_s(self) -> float:
        """How far two names of the same end may lie apart (seconds)."""
        return JITTER_S if self.window_s > 3 * JITTER_S else 0.0

    def overlap(self, mark: int) -> int:
        """Return requests that were under way at some time since `mark` was taken (count, >= 0)."""
        return self.sent - mark

    def reserve_one(self) -> None:
        """Take one request off before it is sent.

        Raises:
            ValueError: there is none. The cap is hard.
        """
        if self.available <= 0:
            raise ValueError("the bucket is empty")
        self.free -= 1
        self.sent += 1
        self.in_flight += 1

    def give_back(self) -> None:
        """Give back what a request did not cost: it was answered 304, or never left. It was counted in this window as
        long as nobody knew, whichever it left in.
        """
        self.given_back += 1
        if not self.is_exhausted:
            self.free = min(self.free + 1, self.limit)

    def exhaust(self) -> None:
        """Note that the platform said that nothing is left in this window."""
        self.free, self.is_exhausted, self.emptied_at = 0, True, 0.0

    def pass_time(self, late: float) -> None:
        """Note that it is at most `late` (UTC epoch seconds): what is under way when the window may be over may be of
        the next.

        To be told before a request is let out, and before one is taken for answered.
        """
        if self.over < 0 and late >= self.reset_at:
            self.over = self.paid - self.in_flight

    def counted_before(self, window: int, made_at: float) -> None:
        """Note that the answer of a request of that window was made at the latest at `made_at` (UTC epoch seconds)."""
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
            remaining: as named; nonsense is clamped to 0..limit.
            reset_at: end of the window that it speaks of (UTC epoch seconds); None: it names none that can be.
            overlap: requests that it may not have counted (count), the one that carried the answer left out.
            now: platform time, `late` the latest that it may be (UTC epoch seconds).
            is_asked: `/rate_limit` said so, not a header.

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
        # all of it was spent longer ago than it lasts, and still it is said not to have begun: its end is not moved on
        is_spent = 0.0 < self.emptied_at < now - max(0.0, reset_at - now) - LATE_S
        is_held = witness.is_vague and remaining >= limit and self.own > 0 and (is_spent or late >= self.reset_at)
        is_held = is_held or (is_spent and remaining == 0)
        if names_end and not is_held:  # otherwise it would move the end on for ever: a probe decides
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
            self.emptied_at = emptied_at  # a window that begins empty does not begin the wait for a look anew
        return is_new

    def _open_later(
        self, witness: Witness, limit: int, remaining: int, reset_at: float, overlap: int, now: float, late: float
    ) -> bool:
        """Take in a word of a later window; return whether it begins that."""
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
            return True  # nothing of ours counts yet: the window may begin as late as it likes
        if late < self.reset_at or (witness.too_little and self._overrules(witness)):
            return False
        if self.reset_at + self.jitter_s < witness.reset_at > late:
            return False  # it has named that end all along
        if witness.is_vague and witness.reset_at:
            return False  # it did not know yet that the window had begun
        if self.is_assumed:
            witness.moved = self.over  # most likely it names the end of the window that was opened without it
            return False
        other = self.shown if witness is self.asked else self.asked
        return not (witness.too_much and not other.too_much and other.heard_at >= self.opened_at)

    def _has_turned(self, witness: Witness, reset_at: float, left: int) -> bool:
        """Return whether the window is over although by the clock it is not: every witness that speaks of it has named
        its end for a while, and names a later one now, and more is left than this window can have.
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
        """Let the newest words of those who name that end count alone: what they said before was of a window that is
        over.
        """
        for witness in (self.shown, self.asked):
            if witness.moved >= 0 or abs(witness.reset_at - reset_at) <= JITTER_S:
                witness.ceiling = witness.latest

    def _overrules(self, witness: Witness) -> int:
        """Return the limit that the other witness names, where that one was never wrong and this one was; else 0."""
        other = self.shown if witness is self.asked else self.asked
        return other.limit if witness.is_blamed and not other.is_blamed else 0

    def begin(self, limit: int, reset_at: float, overlap: int, now: float, late: float) -> None:
        """Begin a new window; `overlap` requests may be counted in it, or what is known to be more."""
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
        """Agree on the end of the window: what the first witness says, of those that are believed most; a second is no
        difference.
        """
        shown, asked, agreed = self.shown.reset_at, self.asked.reset_at, self.reset_at
        if not self.is_assumed and (shown == agreed or not shown) and (asked == agreed or not asked):
            return  # as for nearly every answer: nobody names another one
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
        self.window_s = max(self.window_s, reset_at - self.opened_at) if self.opened_at else self.window_s

    def _is_surpassed(self, vague: Witness, good: list[Witness], late: float) -> bool:
        """Return whether another witness knows the window that had not begun when `vague` spoke of it, maybe a little
        late."""
        began_s = late - vague.heard_at + LATE_S
        return any(each is not vague and vague.reset_at < each.reset_at < vague.reset_at + began_s for each in good)

    def settle(self) -> None:
        """Settle what is left, by all that is believed."""
        until = min(self.began + self.limit, self.first)
        if not self.shown.too_little:
            until = min(until, self.shown.ceiling)
        if not self.asked.too_little:
            until = min(until, self.asked.ceiling)
        self.free = 0 if self.is_exhausted else max(0, until - self.paid)
        if self.free > self.reserve:
            self.emptied_at = 0.0

    def _taken(self, count: int, now: float) -> None:
        """Note that somebody else took at least so many since the word before."""
        if now - self.spell_at > self.window_s * SPELL_SHARE:
            self.spell = 0
        self.spell, self.spell_at = self.spell + count, now
        self.burst = max(self.burst, min(self.spell, int(self.limit * CONTESTED_SHARE)))
