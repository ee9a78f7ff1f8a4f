"""Many items in a row that may not be seen or touched have one cause, most often a permission: say so early, once.

Source: failures.md rows 20, 79.
"""

from dataclasses import dataclass

from bulk.model import ErrorCode, Outcome

WARN_AFTER = 20
"""Items in a row (count)."""

_CAUSES = {
    ErrorCode.FORBIDDEN: "the token of credential {credential!r} probably lacks a permission or scope",
    ErrorCode.NOT_FOUND: "either the names in the items are wrong, or the token of credential {credential!r} may not "
    "see them, which the platform also answers with 404",
}


@dataclass(slots=True)
class FailureWarnings:
    """Items of one job that ended alike, one after the other (count)."""

    code: ErrorCode | None = None
    items: int = 0

    def note(self, outcome: Outcome, job: str, credential: str) -> str | None:
        """Take in an outcome; the warning where it is due."""
        error = outcome.error
        if error is None:
            self.code = None
            return None
        code = error.code
        if code not in _CAUSES:
            self.code = None
            return None
        self.items = self.items + 1 if code is self.code else 1
        self.code = code
        if self.items != WARN_AFTER:
            return None
        cause = _CAUSES[code].format(credential=credential)
        return f"{job}: {WARN_AFTER} items in a row ended as {code}: {cause}; limits.failures would stop such a run"
