"""Warns early, and once, of many items in a row that are forbidden or not found: most often a permission is lacking.

Source: failures.md rows 20, 79.
"""

from dataclasses import dataclass, field

from bulk.model import ErrorCode, Outcome, OutcomeKind

WARN_AFTER = 20
"""Items in a row with the same error code after which a warning is due (count)."""

_CAUSES = {
    ErrorCode.FORBIDDEN: "the token of credential {credential!r} probably lacks a permission or scope",
    ErrorCode.NOT_FOUND: "either the names in the items are wrong, or the token of credential {credential!r} may not "
    "see them, which the platform also answers with 404, or the path of platform.base_url is not that of its API",
}


@dataclass(slots=True)
class FailureWarnings:
    """Errors of one job.

    Attributes:
        code, items: the error code that the last items in a row ended with, and how many items that were (count).
        told: causes (code and credential) for which a warning was given already, shared by all jobs of the run.
        counts: how many items ended with each code (count). messages: the message of the first item with each code.
    """

    code: ErrorCode | None = None
    items: int = 0
    told: set[tuple[ErrorCode, str]] = field(default_factory=set)
    counts: dict[ErrorCode, int] = field(default_factory=dict)
    messages: dict[ErrorCode, str] = field(default_factory=dict)

    @property
    def most_frequent(self) -> tuple[str, int]:
        """The most frequent error code with the message of its first item, and its count; empty and 0 if none."""
        if not self.counts:
            return "", 0
        code = max(self.counts, key=self.counts.__getitem__)
        message = self.messages[code]
        return f"{code}: {message}" if message else str(code), self.counts[code]

    def note(self, outcome: Outcome, job: str, credential: str, is_after_success: bool) -> str | None:
        """Take in an outcome that has an error, and return the warning if one is due.

        Args:
            is_after_success: an item of the job has ended well since the last call.
        """
        error = outcome.error
        assert error is not None, "what ended well is not told one by one"
        code = error.code
        if outcome.kind is not OutcomeKind.SKIPPED:
            self.counts[code] = self.counts.get(code, 0) + 1
            self.messages.setdefault(code, error.message)
        if code not in _CAUSES:
            self.code = None
            return None
        self.items = self.items + 1 if code is self.code and not is_after_success else 1
        self.code = code
        if self.items != WARN_AFTER or (code, credential) in self.told:
            return None
        self.told.add((code, credential))
        said_here = error.http_status is None and error.message  # of an item that was not sent, the reason is known
        cause = said_here or _CAUSES[code].format(credential=credential)
        return f"{job}: {WARN_AFTER} items in a row ended as {code}: {cause}; limits.failures would stop such a run"
