"""What is taken for a name."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bulk import urls
from bulk_jobs.shared import names


@pytest.mark.parametrize("text", ["a", "acme", "Acme-Eng", "mona_acme", "0x1", "a-"])
def test_names_of_owners(text):
    """Letters, digits, hyphens and underscores name an owner; existing names may end oddly."""
    assert not names.flaw_of_owner(text)


@pytest.mark.parametrize("text", ["", "-a", "_a", "a b", "a/b", "a.b", "ä", "a\n", "..", "a\r\nX: y"])
def test_no_names_of_owners(text):
    """Nothing else does: no slash, no line break, no letter beyond ASCII."""
    assert names.flaw_of_owner(text)


@pytest.mark.parametrize("text", ["a", "A1", "acme-eng", "a-b-c"])
def test_new_logins(text):
    """Letters and digits with single hyphens between them make a new organization's name."""
    assert not names.flaw_of_new_login(text)


@pytest.mark.parametrize("text", ["", "-a", "a-", "a--b", "a_b", "a.b", "a b", "ä"])
def test_no_new_logins(text):
    """Hyphens at an end or two in a row, underscores, dots and blanks do not."""
    assert names.flaw_of_new_login(text)


@pytest.mark.parametrize("text", ["a", "hello-world", "a.b", ".github", "_x", "git", "x.git2"])
def test_names_of_repositories(text):
    """Letters, digits, hyphens, underscores and dots name a repository."""
    assert not names.flaw_of_repo(text)


@pytest.mark.parametrize("text", ["", ".", "..", "a/b", "x.git", "x.GIT", "a b", "ä", "a\n"])
def test_no_names_of_repositories(text):
    """Not with its owner, not with .git, and nothing that would leave its place in a path."""
    assert names.flaw_of_repo(text)


BRANCHES = st.text(alphabet="ab/.-~^:?*[\\@{ \x01\x7fäl", max_size=8) | st.sampled_from(
    ["main", "feature/x", "a.lock", "a.lock/b", "x/.y", "@", "a@{b", "a..b", "a//b", "-a", "a.", "wip@home", "/a", "a/"]
)


@settings(max_examples=150)
@given(BRANCHES)
def test_branch_names_as_git_takes_them(text):
    """A name that git refuses for a branch is refused, and one that git takes is not."""
    if not text:
        return
    told = subprocess.run(["git", "check-ref-format", "--branch", text], capture_output=True, check=False)
    assert bool(names.flaw_of_branch(text)) == (told.returncode != 0)


@given(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=4))
def test_a_path_that_passes_can_be_sent_and_keeps_its_segments(parts):
    """Whatever the characters: a path without a flaw becomes a URL path of as many segments."""
    path = "/".join(parts)
    if names.flaw_of_file(path):
        return
    sent = urls.file_path(path)
    assert sent.isascii()
    assert len(sent.split("/")) == len(path.split("/"))
    assert not {".", "..", ""} & set(sent.split("/"))
    assert not set("?#\\ \n\r") & set(sent)


@pytest.mark.parametrize(
    "path", ["", "/a", "a/", "a//b", "../a", "a/../b", "./a", "a\\b", "a\nb", "a\0b", ".git/config", "a/.GIT", "\ud800"]
)
def test_paths_that_lead_elsewhere_are_refused(path):
    """Leading slashes, dot segments, backslashes, control characters, .git and lone surrogates (failures.md row 57)."""
    assert names.flaw_of_file(path)


@pytest.mark.parametrize(
    "text", ["2026-11-21T08:00:00Z", "2026-11-21T08:00:00.5Z", "2026-11-21T08:00:00+02:00", "1999-12-31T23:59:59-11:30"]
)
def test_timestamps(text):
    """ISO 8601 with a time zone is taken."""
    assert not names.flaw_of_timestamp(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-11-21",
        "2026-11-21T08:00:00",
        "2026-13-01T00:00:00Z",
        "2026-11-21 08:00:00Z",
        "20261121T080000Z",
    ],
)
def test_no_timestamps(text):
    """A day alone, a moment without its zone, a month 13 and other forms are not."""
    assert names.flaw_of_timestamp(text)


@given(st.text(max_size=20))
def test_text_without_a_flaw_can_be_sent(text):
    """What passes holds no control character and can be encoded."""
    if not names.flaw_of_text(text):
        text.encode()
        assert not any(ord(char) < 32 or ord(char) == 127 for char in text)


def test_people_need_a_name_and_an_address():
    """Each part of a person is named with its dotted field; a date must be one."""
    bad = names.DatedPerson(name="  ", email="nobody", date="yesterday")
    assert {flaw.field for flaw in names.flaws_of_person("author", bad)} == {
        "author.name",
        "author.email",
        "author.date",
    }
    injected = names.Person(name="A\nX: y", email="a@b>")
    assert {flaw.field for flaw in names.flaws_of_person("committer", injected)} == {
        "committer.name",
        "committer.email",
    }
    assert not list(names.flaws_of_person("author", names.Person(name="Mona Lisa", email="mona@example.com")))
    assert not list(names.flaws_of_person("author", None))


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\x7f", "\x1b[2J", "a\nb"])
def test_text_that_cannot_be_sent(text):
    """Halves of surrogate pairs and control characters; line breaks only where a text may have lines."""
    assert names.flaw_of_text(text)
    assert bool(names.flaw_of_text(text, allowed="\n")) == ("\n" not in text)
