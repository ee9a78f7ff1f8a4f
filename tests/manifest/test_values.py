"""Durations, shares, base URLs and sources of credentials."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.manifest.platform_section import base_url, credential_source
from bulk.quantities import Share, count, duration_s, share


@pytest.mark.parametrize(
    ("given_", "seconds"),
    [("90s", 90), ("15m", 900), ("2h", 7200), ("1d", 86400), ("1.5h", 5400), (90, 90), (0.5, 0.5), ("90", 90)],
)
def test_durations(given_, seconds):
    """A duration is a number with a unit, or seconds."""
    assert duration_s(given_) == seconds


@pytest.mark.parametrize(
    "given_", [0, -1, "0s", "5x", "", "1h30m", "inf", "nan", True, None, [5], "1e3", "367d", 1e300]
)
def test_what_is_no_duration(given_):
    """Anything else says what was expected."""
    with pytest.raises(ValueError, match="expected a duration such as 90s"):
        duration_s(given_)


def test_shares():
    """A count or a share, of which the part is rounded up."""
    assert share(50) == share("50") == Share(count=50)
    assert share("5%") == Share(fraction=0.05)
    assert share("10%").of(1001) == 101
    for bad in ("5 percent", "101%", "-5", 0.05, True, None, "5%%", "%"):
        with pytest.raises(ValueError, match="expected a count such as 50 or a share such as 5%"):
            share(bad)


def test_counts():
    """A whole number within bounds."""
    assert count("64", 1, 100) == 64
    for bad in (0, 101, "x", True, 5.0, None):
        with pytest.raises(ValueError, match="expected a whole number from 1 to 100"):
            count(bad, 1, 100)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://Code.Example.COM/api/v3", "https://code.example.com/api/v3"),
        ("HTTPS://code.example.com:443/api/v3//", "https://code.example.com/api/v3"),
        ("https://code.example.com:8443/api/v3/", "https://code.example.com:8443/api/v3"),
        ("https://example.com/code/api/v3", "https://example.com/code/api/v3"),
        ("http://127.0.0.1:80/api/v3", "http://127.0.0.1/api/v3"),
        ("http://localhost:8080/api/v3", "http://localhost:8080/api/v3"),
        ("http://[::1]:8080/api/v3", "http://[::1]:8080/api/v3"),
        ("https://[2001:DB8:0:0::1]/api/v3", "https://[2001:db8::1]/api/v3"),
        ("https://bücher.example/api/v3", "https://xn--bcher-kva.example/api/v3"),
        ("https://api.example.com", "https://api.example.com"),
        ("https://API.example.com:443/", "https://api.example.com"),
        ("https://code.example.com/api/v4", "https://code.example.com/api/v4"),
    ],
)
def test_base_urls_have_one_spelling(text, url):
    """What means the same is spelled the same, and stays so (failures.md row 74)."""
    assert base_url(text) == url
    assert base_url(url) == url


@pytest.mark.parametrize(
    "text",
    [
        "", "code.example.com/api/v3", "ftp://code.example.com/api/v3", "https:///api/v3", "https://h/api/v3?x=1",
        "https://h/api/v3?", "https://h/api/v3#x", "https://h/../api/v3",
        "https://h/a//api/v3", "https://h/%2e/api/v3", "https://me:hunter2@h/api/v3", "https://hunter2@h/api/v3",
        "https://h:0/api/v3", "https://h:99999/api/v3", "https://h:x/api/v3", "https://h\r\nX: y/api/v3",
        "https://h /api/v3", "https://-h/api/v3", "https://[::1/api/v3", "https://[zz]/api/v3", "https://h;x/api/v3",
        "http://code.example.com/api/v3", "http://127.0.0.1.example.com/api/v3", "http://10.0.0.1/api/v3",
        "https://h\u2028/api/v3", "https://" + "a." * 200 + "b/api/v3", "https://..h/api/v3",
    ],
)  # fmt: skip
def test_other_base_urls_are_refused(text):
    """Whatever is not a plain address of a platform is refused, and a password in it is not repeated."""
    with pytest.raises(ValueError, match=r"HOST/api/v3|plain http") as caught:
        base_url(text)
    assert "hunter2" not in str(caught.value)


def test_plain_http_can_be_insisted_on():
    """Plain http to another machine needs `allow_insecure_http` (failures.md row 73)."""
    assert base_url("http://10.0.0.1/api/v3", allow_insecure_http=True) == "http://10.0.0.1/api/v3"


@given(st.text(max_size=30))
def test_no_text_breaks_the_base_url(text):
    """Any text is a base URL or refused with a reason."""
    for url in (text, f"https://{text}/api/v3", f"https://h/{text}/api/v3"):
        try:
            found = base_url(url)
        except ValueError as error:
            found = ""
            reason = str(error)
        assert (
            base_url(found) == found if found else reason.startswith(("plain http", "must end in", "expected https:"))
        )
        assert found.isascii()
        assert found.isprintable() or not found


def test_sources_of_credentials():
    """A source is env:, file: or command:; a file's path is seen from the manifest's folder."""
    folder = Path("/srv/jobs")
    assert credential_source("env:TOKEN", folder) == "env:TOKEN"
    assert credential_source("file:t/x", folder) == "file:/srv/jobs/t/x"
    assert credential_source("file:/t", folder) == "file:/t"
    assert credential_source("file:~/t", folder) == f"file:{Path.home()}/t"
    assert credential_source("command: pass show x", folder) == "command:pass show x"


@pytest.mark.parametrize(
    "text",
    [
        "hunter2",
        "env:",
        "env:a-hunter2",
        "file:",
        "file: ",
        "command:",
        "command:'hunter2",
        "ENV:hunter2",
        "",
        "Bearer:hunter2",
    ],
)
def test_a_token_is_never_repeated(text):
    """What is not a source may be the token itself: it is refused without being repeated (failures.md row 61)."""
    with pytest.raises(ValueError, match="expected") as caught:
        credential_source(text, Path())
    assert "hunter2" not in str(caught.value)
