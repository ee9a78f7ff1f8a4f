"""Many items in a row that end alike: one warning, at the right one, with the likely cause."""

import pytest

from bulk.engine.status.warnings import WARN_AFTER, FailureWarnings
from bulk.model import ErrorCode, Outcome, failed, skipped, succeeded

NOT_FOUND = failed(ErrorCode.NOT_FOUND, "?", http_status=404)
FORBIDDEN = failed(ErrorCode.FORBIDDEN, "?", http_status=403)
CONFLICT, FINE = failed(ErrorCode.CONFLICT, "?"), succeeded(None)


@pytest.mark.parametrize(("outcome", "says"), [(NOT_FOUND, "names"), (FORBIDDEN, "permission or scope")])
def test_the_twentieth_is_warned_of_and_no_other(outcome: Outcome, says: str) -> None:
    """failures.md row 20: 20 in a row give one warning that names job, credential and cause; more give no second."""
    failure_warnings = FailureWarnings()
    warnings = [failure_warnings.note(outcome, "readmes", "default") for _ in range(3 * WARN_AFTER)]
    assert [place for place, warning in enumerate(warnings, 1) if warning is not None] == [20]
    warning = warnings[19] or ""
    assert warning.startswith("readmes: 20 items in a row")
    assert "'default'" in warning
    assert says in warning


@pytest.mark.parametrize("between", [FINE, CONFLICT, FORBIDDEN])
def test_anything_else_begins_the_count_anew(between: Outcome) -> None:
    """A success, another refusal or a refusal of the other kind ends the row, and 20 further ones are warned of."""
    failure_warnings = FailureWarnings()
    first = [failure_warnings.note(each, "j", "c") for each in [NOT_FOUND] * 19 + [between] + [NOT_FOUND] * 19]
    assert set(first) == {None}
    assert failure_warnings.note(NOT_FOUND, "j", "c") is not None


def test_what_was_not_sent_has_a_known_cause() -> None:
    """Items of an owner where the App is not installed fail unsent: the warning says that, and guesses nothing."""
    why, failure_warnings = "the App of credential 'fleet' is not installed in acme", FailureWarnings()
    unsent = failed(ErrorCode.FORBIDDEN, why)
    (warning,) = filter(None, [failure_warnings.note(unsent, "j", "fleet") for _ in range(WARN_AFTER)])
    assert f"ended as forbidden: {why};" in warning
    assert "scope" not in warning


def test_other_failures_are_not_warned_of() -> None:
    """A conflict says nothing about permissions."""
    failure_warnings = FailureWarnings()
    assert {failure_warnings.note(CONFLICT, "j", "c") for _ in range(40)} == {None}
    assert (failure_warnings.code, failure_warnings.items) == (None, 0)


def test_one_cause_is_warned_of_once_in_a_run() -> None:
    """Two jobs that fail alike, and one that does so again and again: one warning for a code and credential."""
    told: set[tuple[ErrorCode, str]] = set()
    jobs = [FailureWarnings(told=told), FailureWarnings(told=told)]
    outcomes = ([NOT_FOUND] * 20 + [FINE]) * 5
    warnings = [job.note(each, "j", "c") for job in jobs for each in outcomes]
    assert sum(warning is not None for warning in warnings) == 1
    assert [jobs[1].note(each, "j", "other") is not None for each in [NOT_FOUND] * 20][-1]


def test_what_went_wrong_most_often_is_told() -> None:
    """By code, with what the first item of it said; what was skipped went not wrong by itself."""
    errors = FailureWarnings()
    assert errors.most_frequent == ("", 0)
    for each in (
        CONFLICT,
        failed(ErrorCode.FORBIDDEN, "no"),
        FORBIDDEN,
        skipped(ErrorCode.DEPENDENCY_FAILED, "x"),
        FINE,
    ):
        errors.note(each, "j", "c")
    assert errors.most_frequent == ("forbidden: no", 2)
