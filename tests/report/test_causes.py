"""Items that did not succeed for one reason are one cause."""

from hypothesis import given
from hypothesis import strategies as st

from bulk.report.causes import MOST_CAUSES, Cause, Causes, common

KIND = ("readmes", "failed", "not_found")


def test_what_a_message_names_makes_no_cause_of_its_own():
    """Names and numbers of the item are taken out: 500 messages are one cause, with the first three as examples."""
    causes = Causes()
    for place in range(500):
        name = f"service-{place}"
        assert causes.note(place, KIND, f"{name} has 1{place} files", {"repo": name}) == 0
    assert causes.found == [Cause(*KIND, "… has … files", 500, [0, 1, 2])]


def test_a_message_that_is_always_the_same_stays_as_it_is():
    """Nothing is taken out of what needs no comparing."""
    causes = Causes()
    for place in range(3):
        causes.note(place, KIND, "Not Found (404)", {"repo": f"r{place}"})
    assert causes.found[0].message == "Not Found (404)"


def test_jobs_outcomes_and_codes_are_kept_apart():
    """The same words mean something else in another job, or with another code."""
    causes = Causes()
    kinds = [KIND, ("files", "failed", "not_found"), ("readmes", "unknown", "not_found"), ("readmes", "failed", "x")]
    assert [causes.note(place, kind, "Not Found", {}) for place, kind in enumerate(kinds)] == [0, 1, 2, 3]


def test_messages_without_number_are_put_together():
    """A platform that says something else each time fills no memory: the causes after the thousandth are one."""
    causes = Causes()
    words = [f"{'ab'[place % 2]}{'x' * (place // 2)}" for place in range(MOST_CAUSES + 100)]
    for place, each in enumerate(words):
        causes.note(place, KIND, each, {})
    assert len(causes.found) == MOST_CAUSES + 1
    assert (causes.found[-1].message, causes.found[-1].count) == ("", 100)


@given(st.text(max_size=40), st.dictionaries(st.text(max_size=5), st.text(max_size=9) | st.integers(), max_size=4))
def test_what_is_common_names_nothing(message, item):
    """No number is left of a message, and it is common with itself."""
    assert not any(char.isdigit() and char.isascii() for char in common(message, item))
    assert common(message, item) == common(message, dict(reversed(item.items())))
