"""Secrets are shown nowhere, and taken out of whatever comes back; text from outside is safe to show."""

import base64
import copy
import json
import logging
import pickle
import re
import traceback
from urllib.parse import quote, quote_plus

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.platform.auth.secrets import Secret
from bulk.redaction import is_secret, redact, remember
from bulk.redaction.known import MASK
from bulk.redaction.printable import printable
from bulk.redaction.registry import Registry

TEXT = 'tok_A+b/c=d&"e\\f'


def test_a_secret_shows_its_text_only_when_asked_to():
    """failures.md row 62: not by repr, str, format, logging, encoding or in a collection; only by `reveal`."""
    secret = Secret(TEXT)
    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret:>40}",
        f"{secret!r}",
        "{} {!r}".format(secret, secret),  # noqa: UP032 - as logging does it
        repr([secret]),
    ]
    assert all(TEXT not in text and MASK in text for text in shown)
    assert secret.reveal() == TEXT
    for encode in (json.dumps, orjson.dumps, msgspec.json.encode, msgspec.to_builtins):
        with pytest.raises(TypeError) as refused:
            encode(secret)
        assert TEXT not in str(refused.value)
    with pytest.raises(TypeError):
        vars(secret)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_secret_cant_be_pickled_or_taken_apart(protocol):
    """failures.md row 62: nothing that copies an object's state gets at the text; a copy is the secret itself."""
    secret = Secret(TEXT)
    with pytest.raises(TypeError) as refused:
        pickle.dumps(secret, protocol)
    assert TEXT not in str(refused.value)
    with pytest.raises(TypeError):
        secret.__getstate__()
    assert copy.copy(secret) is secret
    assert copy.deepcopy({"token": secret})["token"] is secret


def test_a_secret_is_not_in_logs_and_tracebacks(caplog):
    """failures.md row 62: a log record that holds one, and a traceback through code that does, show only a mask."""
    secret = Secret(TEXT)
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("bulk.test").debug("token %s in %r", secret, {"token": secret})
    assert TEXT not in caplog.text
    try:
        raise ValueError(f"bad {secret}")
    except ValueError as error:
        whole = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "secret = ***" in whole
    assert TEXT not in whole.replace(repr(TEXT), "")


def test_secrets_are_compared_without_being_shown():
    """Two secrets with the same text are the same; they are not equal keys of a dictionary by accident."""
    one, same, other = Secret(TEXT), Secret(TEXT), Secret(TEXT + "x")
    assert one.is_same(same)
    assert not one.is_same(other)
    assert not one.is_same(Secret("tök"))
    assert len({one, same}) == 2


def forms(text: str) -> list[str]:
    """How a platform or a program may echo `text`."""
    raw = text.encode()
    lower_hex = re.sub("%..", lambda found: found[0].lower(), quote(text, safe=""))
    found = [
        text,
        json.dumps(text)[1:-1],
        quote(text, safe=""),
        quote(text),
        quote_plus(text),
        lower_hex,
    ]
    for before in (b"", b"u", b"us", b"user:", b"x-access-token:"):
        for after in (b"", b"!", b"!!"):
            found += [
                base64.b64encode(before + raw + after).decode(),
                base64.urlsafe_b64encode(before + raw + after).decode(),
            ]
    return found


tokens = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=12, max_size=60)


@given(tokens, st.text(max_size=20), st.text(max_size=20))
def test_every_form_of_a_secret_is_taken_out(text, before, after):
    """failures.md row 63: raw, escaped, URL-encoded and Base64 at any offset: what is left holds no long part of it."""
    registry = Registry()
    registry.add(text)
    for form in forms(text):
        left = registry.redact(before + form + after)
        assert text not in left
        assert form not in left
        # of Base64, what remains at the ends holds less than four characters of the secret
        assert len(left) <= len(before) + len(after) + len(form) - len(text) + 12


def test_short_texts_and_strangers_stay():
    """What was never a secret stays as it is, and three characters are too few to be one."""
    remember("abc")
    assert redact("abc is here") == "abc is here"
    assert not is_secret("abc")
    assert redact("") == ""
    remember("hunter2-hunter2")
    assert redact("say hunter2-hunter2!") == f"say {MASK}!"
    assert is_secret("hunter2-hunter2")


def test_the_longer_of_two_secrets_goes_first():
    """A secret that begins another one does not leave the other's end behind."""
    remember("prefix-secret")
    remember("prefix-secret-and-more")
    assert redact("<prefix-secret-and-more>") == f"<{MASK}>"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("Grüße, 世界 🎉", "Grüße, 世界 🎉"),
        ("two\nlines\tand\r\ntabs", "two lines and  tabs"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;ZXZpbA==", ""),
        ("\x9b2Jcleared", "cleared"),
        ("\x1bcreset", "reset"),
        ("a\x00b\x07c\x7fd\x85e", "abcde"),
        ("safe\u202egnp.exe", "safegnp.exe"),
        ("\u2066isolated\u2069 \u200bzero\u200dwidth\ufeff", "isolated zero\u200dwidth"),
        ("lone \ud800 surrogate", "lone  surrogate"),
        ("line\u2028separator\u2029", "line separator "),
        ("\x1b", ""),
        ("\x1b\x1b[31m", ""),
    ],
)
def test_what_a_terminal_would_obey_is_dropped(text, shown):
    """failures.md row 66: escape sequences, controls, bidirectional and invisible marks are gone, and nothing else."""
    assert printable(text) == shown


@given(st.text() | st.text(st.sampled_from("\x1b\x9b[]0;m\x07\\\u202e\u200d ab")), st.integers(1, 30))
def test_whatever_comes_is_printable_and_within_its_length(text, most):
    """failures.md row 66: no text leaves anything that can't be shown, and a limit is kept."""
    assert printable(text).replace("\u200d", "").isprintable()
    assert len(printable(text, most)) <= most
    assert printable(printable(text)) == printable(text)
