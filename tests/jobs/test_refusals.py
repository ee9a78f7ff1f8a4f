"""What is read out of error bodies, whatever they look like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import refusals
from tests.jobs.driver import reply

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
    assert isinstance(refusals.is_taken(answer), bool)


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
    ("body", "is_taken"),
    [
        ({"errors": [{"code": "already_exists"}]}, True),
        ({"message": "Organization name is already taken"}, True),
        ({"message": "login already exists"}, True),
        ({"message": "Validation Failed"}, False),
        ({"errors": [{"code": "invalid"}]}, False),
    ],
)
def test_a_name_that_is_taken(body, is_taken):
    """By code or by words."""
    assert refusals.is_taken(reply(422, body)) is is_taken


@pytest.mark.parametrize(
    ("body", "is_large"),
    [
        ({"message": "x", "errors": [{"code": "too_large"}]}, True),
        ({"message": "This API returns blobs up to 1 MB in size."}, True),
        ({"message": "The file is too large"}, True),
        ({"message": "Resource not accessible by this token"}, False),
    ],
)
def test_a_file_that_is_too_large(body, is_large):
    """By code or by words; a lack of permission is not."""
    assert refusals.is_too_large(reply(403, body)) is is_large
