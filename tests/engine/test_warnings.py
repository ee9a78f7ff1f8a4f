"""Many items in a row that end alike: one warning, at the right one, with the likely cause."""

from collections.abc import Iterable

import pytest

from bulk.engine.status.warnings import WARN_AFTER, FailureWarnings
from bulk.model import ErrorCode, Outcome, failed, skipped, succeeded

NOT_FOUND = failed(ErrorCode.NOT_FOUND, "?", http_status=404)
FORBIDDEN = failed(ErrorCode.FORBIDDEN, "?", http_status=403)
CONFLICT, FINE = failed(ErrorCode.CONFLICT, "?"), succeeded(None)


def warnings_of(
    failure_warnings: FailureWarnings, outcomes: Iterable[Outcome], job: str = "j", credential: str = "c"
) -> list[str | None]:
    """The warning of each outcome, as the run asks for it: of those that have an error."""
    warnings: list[str | None] = []
    is_after_success = False
    for outcome in outcomes:
        is_well = outcome.error is None
        warnings.append(None if is_well else failure_warnings.note(outcome, job, credential, is_after_success))
        is_after_success = is_well
    return warnings


@pytest.mark.parametrize(("outcome", "says"), [(NOT_FOUND, "names"), (FORBIDDEN, "permission or scope")])
def test_the_twentieth_is_warned_of_and_no_other(outcome: Outcome, says: str) -> None:
    """failures.md row 20: 20 in a row give one warning that names job, credential and cause; more give no second."""
    failure_warnings = FailureWarnings()
    warnings = warnings_of(failure_warnings, [outcome] * 3 * WARN_AFTER, "readmes", "default")
    assert [place for place, warning in enumerate(warnings, 1) if warning is not None] == [20]
    warning = warnings[19] or ""
    assert warning.startswith("readmes: 20 items in a row")
    assert "'default'" in warning
    assert says in warning


@pytest.mark.parametrize("between", [FINE, CONFLICT, FORBIDDEN])
def test_anything_else_begins_the_count_anew(between: Outcome) -> None:
    """A success, another refusal or a refusal of the other kind ends the row, and 20 further ones are warned of."""
    failure_warnings = FailureWarnings()
    warnings = warnings_of(failure_warnings, [NOT_FOUND] * 19 + [between] + [NOT_FOUND] * 20)
    assert [warning is not None for warning in warnings] == [False] * 39 + [True]


def test_what_was_not_sent_has_a_known_cause() -> None:
    """Items of an owner where the App is not installed fail unsent: the warning says that, and guesses nothing."""
    why, failure_warnings = "the App of credential 'fleet' is not installed in acme", FailureWarnings()
    unsent = failed(ErrorCode.FORBIDDEN, why)
    (warning,) = filter(None, warnings_of(failure_warnings, [unsent] * WARN_AFTER, "j", "fleet"))
    assert f"ended as forbidden: {why};" in warning
    assert "scope" not in warning


def test_other_failures_are_not_warned_of() -> None:
    """A conflict says nothing about permissions."""
    failure_warnings = FailureWarnings()
    assert set(warnings_of(failure_warnings, [CONFLICT] * 40)) == {None}
    assert (failure_warnings.code, failure_warnings.items) == (None, 0)


def test_one_cause_is_warned_of_once_in_a_run() -> None:
    """Two jobs that fail alike, and one that does so again and again: one warning for a code and credential."""
    told: set[tuple[ErrorCode, str]] = set()
    jobs = [FailureWarnings(told=told), FailureWarnings(told=told)]
    outcomes = ([NOT_FOUND] * 20 + [FINE]) * 5
    warnings = [warning for job in jobs for warning in warnings_of(job, outcomes)]
    assert sum(warning is not None for warning in warnings) == 1
    assert warnings_of(jobs[1], [FINE] + [NOT_FOUND] * 20, "j", "other")[-1] is not None


def test_what_went_wrong_most_often_is_told() -> None:
    """By code, with what the first item of it said; what was skipped went not wrong by itself."""
    errors = FailureWarnings()
    assert errors.most_frequent == ("", 0)
    no, skip = failed(ErrorCode.FORBIDDEN, "no"), skipped(ErrorCode.DEPENDENCY_FAILED, "x")
    warnings_of(errors, (CONFLICT, no, FORBIDDEN, skip, FINE))
    assert errors.most_frequent == ("forbidden: no", 2)
