"""What is the same thing to a platform that keeps it in a form of its own."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk_jobs.shared import normal_forms as forms

SAME_URLS = (
    "https://hooks.example.com/a/b",
    "HTTPS://Hooks.Example.COM/a/b",
    "https://hooks.example.com:443/a/b",
    "https://hooks.example.com./a/b/",
    " https://hooks.example.com/%61/b\n",
    "https://hooks.example.com/a/b/",
)
DIFFERENT_URLS = (
    "https://hooks.example.com/a/b",
    "http://hooks.example.com/a/b",
    "https://hooks.example.com:8443/a/b",
    "https://hooks.example.com/A/b",
    "https://hooks.example.com/a%2Fb",
    "https://hooks.example.com/a/b?x=1",
    "https://hooks.example.com/a/b?x=2",
    "https://hooks.example.com/a/b#x",
    "https://hooks.example.org/a/b",
    "https://hooks.example.com",
    "hooks.example.com/a/b",
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
EVERY_FORM = (forms.text, forms.name, forms.switch, forms.url, forms.exact_url, forms.plain)


def test_urls_that_are_one():
    """Case of scheme and host, a default port, a slash at the end and needless escapes make no other address."""
    assert len({forms.url(each) for each in SAME_URLS}) == 1
    assert forms.url("https://hooks.example.com") == forms.url("https://hooks.example.com/")
    assert forms.url("https://bücher.example/ä") == forms.url("https://xn--bcher-kva.example/%c3%a4")
    assert forms.url("http://a.example:80/x") == forms.url("http://A.example/x")


def test_a_slash_may_lead_elsewhere():
    """Whether a platform drops or adds a slash at the end is not known before it has answered."""
    assert len({forms.exact_url(each) for each in SAME_URLS}) == 2
    assert forms.exact_url("https://a.example/x?y/") != forms.exact_url("https://a.example/x/?y/")
    assert forms.exact_url("https://a.example?y") == forms.exact_url("https://a.example:443/?y")


def test_urls_that_are_not():
    """Everything else is another address."""
    for one, other in itertools.combinations(DIFFERENT_URLS, 2):
        assert forms.url(one) != forms.url(other)


@given(JSON)
def test_no_form_ever_raises(value):
    """Whatever a platform shows has a form, which can be compared and put into a set."""
    for form in EVERY_FORM:
        assert form(value) == form(value)
        hash(form(value))
    assert forms.is_within(value, value)


@given(st.text(max_size=20))
def test_a_form_is_its_own_form(text):
    """Bringing a value into its form twice changes nothing more."""
    for form in (forms.text, forms.name, forms.switch):
        assert form(form(text)) == form(text)
    url = forms.url(f"https://a.example/{text}")
    assert forms.url(url) == url


@given(st.text(max_size=20))
def test_blanks_around_a_text_say_nothing(text):
    """A text that is trimmed or written with other line ends is the same, one with other blanks inside is not."""
    assert forms.text(f"  {text}\n") == forms.text(text)
    assert forms.text("a\r\nb") == forms.text("a\nb")
    assert forms.text("a  b") != forms.text("a b")
    assert forms.text("A") != forms.text("a")


def test_names_and_switches():
    """Case and the way a number is written say nothing of a name; a switch is on or off in three spellings."""
    assert forms.name(" Acme-ENG ") == forms.name("acme-eng")
    assert forms.name(7) == forms.name("7") != forms.name(8)
    assert forms.name("e\u0301") == forms.name("É")
    assert forms.switch("0") == forms.switch(0) == forms.switch(False) != forms.switch("1")
    assert forms.switch("1") == forms.switch(1) == forms.switch(True)


@pytest.mark.parametrize(
    ("asked", "shown", "is_so"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": None}, {}, True),
        ({"a": True}, {"a": 1}, True),
        ({"a": True}, {"a": "true"}, True),
        ({"a": False}, {"a": "0"}, True),
        ({"a": True}, {"a": 0}, False),
        ({"a": True}, {}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 7}, {"a": "7"}, True),
        ({"a": 7}, {"a": "8"}, False),
        ([1, 2], ["2", "1"], True),
        ([True, False], [0, 1], True),
        ({"a": None}, {"a": ""}, True),
        ({"a": None}, {"a": 0}, False),
        ({"a": "x"}, {"a": "X"}, False),
        ({"a": "x "}, {"a": "x"}, True),
        ({"a": ""}, {"a": None}, True),
        ({"a": False}, {"a": None}, False),
        ({"a": False}, {}, True),
        ({"a": {"b": False}}, {"a": None}, False),
        ({"a": 0}, {}, False),
        ({"a": {"b": None}}, {"a": None}, True),
        ([1, 2], [2, 1], True),
        ([1, 1], [1, 2], False),
        (["a", "a"], ["a"], True),
        ([{"a": 1}, {"a": 1}], [{"a": 1, "b": 2}], True),
        ([1, 2], [1], False),
        ([1], [1, 1], False),
        ([{"a": 1}], [{"a": 1, "b": 2}], True),
        ([{}, {"a": 1}], [{"a": 1}, {"b": 1}], True),
        ([{}, {"a": 1}, {"a": 1, "b": 2}], [{"a": 1, "b": 2}, {"a": 1}, {"c": 1}], True),
        ([None, {"a": None}], [None, {"a": None, "b": 1}], True),
        ([], None, True),
        ([1], None, False),
        ({}, [], False),
    ],
)
def test_what_is_as_asked_for(asked, shown, is_so):
    """Everything asked for is shown, whatever is shown beside it; lists in any order, but none longer."""
    assert forms.is_within(asked, shown) is is_so


def test_a_member_has_a_form_of_its_own():
    """A word of a set is in any case, at any depth; what stands beside it is compared by the form of its field."""
    asked = {"rules": [{"type": "Team", "modes": ["ALWAYS"], "label": "a"}]}
    words = {"type": forms.name, "modes": forms.name}
    for shown, differing in (
        ({"type": "TEAM", "modes": ["always"], "label": "a"}, []),
        ({"type": "TEAM", "modes": ["always"], "label": "A"}, ["rules"]),
    ):
        assert forms.differences(asked, {"rules": [shown]}, {}, words) == differing
        assert not forms.differences(asked, {"rules": [shown]}, {"rules": forms.name}, {})


@given(st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4), st.randoms(use_true_random=False))
def test_order_and_additions_say_nothing(asked, dice):
    """A platform that adds defaults and puts lists into another order still shows what was asked for."""

    def shown(value):
        if isinstance(value, dict):
            return {**{name: shown(each) for name, each in value.items()}, "added": 1}
        if isinstance(value, list):
            return dice.sample([shown(each) for each in value], len(value))
        return value

    if "added" not in str(asked):
        assert not forms.differences(asked, shown(asked), {})
