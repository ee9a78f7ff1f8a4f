"""Many items in a row that may not be seen or touched have one cause, most often a permission: say so early, once.

Source: failures.md rows 20, 79.
"""

from dataclasses import dataclass, field

from bulk.model import ErrorCode, Outcome, OutcomeKind

WARN_AFTER = 20
"""Items in a row (count)."""

_CAUSES = {
    ErrorCode.FORBIDDEN: "the token of credential {credential!r} probably lacks a permission or scope",
    ErrorCode.NOT_FOUND: "either the names in the items are wrong, or the token of credential {credential!r} may not "
    "see them, which the platform also answers with 404, or the path of platform.base_url is not that of its API",
}


@dataclass(slots=True)
class FailureWarnings:
    """Errors of one job.

    Attributes:
        code, items: with which code the last items ended alike, and how many of them, one after the other (count).
        told: causes (code and credential) that were warned of already, of all jobs of the run.
        counts: how many items ended with each code; messages: what the first one of each said.
    """

    code: ErrorCode | None = None
    items: int = 0
    told: set[tuple[ErrorCode, str]] = field(default_factory=set)
    counts: dict[ErrorCode, int] = field(default_factory=dict)
    messages: dict[ErrorCode, str] = field(default_factory=dict)

    @property
    def most_frequent(self) -> tuple[str, int]:
        """The code that occurred most, with what its first item said, and how often; empty where nothing went wrong."""
        if not self.counts:
            return "", 0
        code = max(self.counts, key=self.counts.__getitem__)
        message = self.messages[code]
        return f"{code}: {message}" if message else str(code), self.counts[code]

    def note(self, outcome: Outcome, job: str, credential: str) -> str | None:
        """Take in an outcome; the warning where it is due."""
        error = outcome.error
        if error is None:
            self.code = None
            return None
        code = error.code
        if outcome.kind is not OutcomeKind.SKIPPED:
            self.counts[code] = self.counts.get(code, 0) + 1
            self.messages.setdefault(code, error.message)
        if code not in _CAUSES:
            self.code = None
            return None
        self.items = self.items + 1 if code is self.code else 1
        self.code = code
        if self.items != WARN_AFTER or (code, credential) in self.told:
            return None
        self.told.add((code, credential))
        said_here = error.http_status is None and error.message  # of what was not sent the reason is known
        cause = said_here or _CAUSES[code].format(credential=credential)
        return f"{job}: {WARN_AFTER} items in a row ended as {code}: {cause}; limits.failures would stop such a run"
