"""What is read out of error bodies, whatever they look like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.model import ErrorCode, OutcomeKind
from bulk.operation import find
from bulk_jobs.shared import refusals
from tests.jobs.answers_to_writes import WRITES
from tests.jobs.driver import reply, run

CREATIONS = [
    (write.operation, write.item)
    for write in WRITES
    if write.operation.endswith(".create") and write.operation != "snapshot.create"
]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["message", "errors", "code", "field"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_any_body_is_survived(body):
    """No shape of an error body breaks the reading of it, and there is always a message, of at most 500 characters."""
    answer = reply(422, body)
    assert 0 < len(refusals.message_of(answer)) <= 500
    assert isinstance(refusals.is_too_large(answer), bool)
    assert refusals.refused(answer).kind is OutcomeKind.FAILED
    assert not refusals.is_empty_repository(answer)
    assert not refusals.is_against_rules(answer)


def test_a_long_message_is_cut():
    """A page of text from the platform does not become a page in every report."""
    assert len(refusals.message_of(reply(422, {"message": "x" * 10_000}))) == 500


def test_single_errors_are_named():
    """Texts and objects among the errors stand behind the message, each once."""
    errors = [
        "first",
        {"message": "second"},
        {"resource": "Organization", "field": "login", "code": "invalid"},
        3,
        "first",
    ]
    said = refusals.message_of(reply(422, {"message": "Validation Failed", "errors": errors}))
    assert said == "Validation Failed; first; second; Organization login invalid"


@pytest.mark.parametrize(
    ("status", "body", "is_taken"),
    [
        (422, {"errors": [{"code": "already_exists"}]}, True),
        (409, {}, True),
        (422, {"message": "Organization name is already taken"}, False),
        (422, {"message": "login already exists", "errors": ["already_exists"]}, False),
        (422, {"errors": [{"code": "invalid", "message": "already_exists"}]}, False),
    ],
)
def test_a_name_that_is_taken(status, body, is_taken):
    """By status or code, never by words."""
    expected = ErrorCode.CONFLICT if is_taken else ErrorCode.VALIDATION_FAILED
    found = refusals.refused(reply(status, body)).error
    assert found is not None
    assert found.code is expected


WHOLE = (
    "This API returns blobs up to 1 MB in size. The requested blob is too large to fetch via the API, but you can use "
    "the Git Data API to request blobs up to 100 MB in size."
)


@pytest.mark.parametrize(
    ("body", "is_large"),
    [
        ({"message": "x", "errors": [{"code": "too_large"}]}, True),
        ({"message": "This API returns blobs up to 1 MB in size."}, True),
        ({"message": WHOLE}, True),
        ({"message": "The file is too large"}, False),
        ({"message": "Access to acme/too_large is blocked: files of 1 MB in size"}, False),
        ({"message": f"{WHOLE} acme/x"}, False),
        ({"message": "Resource not accessible by this token"}, False),
    ],
)
def test_a_file_that_is_too_large(body, is_large):
    """By code, or by the platform's own sentence alone; words among others decide nothing."""
    assert refusals.is_too_large(reply(403, body)) is is_large


NAMES = st.sampled_from(
    ("too large", "too_large", "in size", "already exists", "already taken", "already_exists", "must be unique")
) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
TEMPLATES = st.sampled_from(
    (
        "Repository access to {0}/{1} blocked",
        "{0} is not a valid value for {1}",
        "Repository {0} is empty.",
        "This repository is empty. ({0})",
        "{0}\nThis repository is empty.\n{1}",
        "Path {0} in {1} can't be read",
        "Validation of {0} failed: {1}",
    )
)


@given(TEMPLATES, NAMES, NAMES, st.sampled_from(((403, "is_too_large"), (404, "is_empty_repository"))))
def test_names_in_words_decide_nothing(template, one, other, asked):
    """Whatever names a message quotes, it is no sign of a size or of an empty repository."""
    status, question = asked
    body = {"message": template.format(one, other), "errors": [{"message": f"{one} {other}", "code": "custom"}, one]}
    assert getattr(refusals, question)(reply(status, body)) is False
    found = refusals.refused(reply(422, body)).error
    assert found is not None
    assert found.code is ErrorCode.VALIDATION_FAILED


@given(NAMES, NAMES)
def test_words_do_not_change_what_a_creation_does(one, other):
    """A refused creation reads what is there, whatever the words are, and asks for the same each time."""
    body = {"message": f"{one} {other}", "errors": [f"{other} {one}"]}
    for operation, item in CREATIONS:
        here = reply(404) if operation == "organization.create" else reply(body=[])
        driven = run(find(operation), item, here, reply(422, body), here)
        assert [request.method for request in driven.requests] == ["GET", "POST", "GET"]
        assert driven.error.code is ErrorCode.VALIDATION_FAILED


@given(NAMES, NAMES)
def test_words_do_not_change_what_a_refused_read_does(one, other):
    """A read that is refused is forbidden, and nothing more is asked for, whatever the words are."""
    refusal = reply(403, {"message": f"{one} {other}", "errors": [one]})
    driven = run(find("readme.get"), {"owner": "acme", "repo": "api"}, refusal)
    assert (len(driven.requests), driven.error.code) == (1, ErrorCode.FORBIDDEN)


@pytest.mark.parametrize("errors", ["No organization nope", {"message": "No organization nope"}])
def test_one_error_may_stand_without_a_list(errors):
    """What is wrong is told, in whatever form the platform says it."""
    assert refusals.message_of(reply(422, {"message": "No", "errors": errors})) == "No; No organization nope"
