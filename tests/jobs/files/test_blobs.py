"""Git blobs and Base64."""

import base64
import binascii
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bulk_jobs.shared.files import blobs


@settings(max_examples=40)
@given(st.binary(max_size=2_000))
def test_blob_sha_is_what_git_says(content):
    """For any bytes the name is the one that `git hash-object` prints."""
    told = subprocess.run(["git", "hash-object", "--stdin"], input=content, capture_output=True, check=True)
    assert blobs.blob_sha(content) == told.stdout.decode().strip()


@given(st.binary(max_size=500), st.integers(1, 80), st.sampled_from(["\n", "\r\n"]))
def test_base64_comes_back_also_in_lines(content, width, newline):
    """What was encoded is decoded again, on one line or broken into lines as the platform does."""
    text = blobs.encode(content)
    lines = newline.join(text[at : at + width] for at in range(0, len(text), width))
    assert "\n" not in text
    assert blobs.decode(text) == content
    assert blobs.decode(lines + newline) == content
    assert text == base64.b64encode(content).decode()
    assert blobs.on_one_line(lines + newline, content) == blobs.on_one_line(text, content) == text


@given(st.text("AQg+/=\n", max_size=12))
def test_base64_is_strict_and_sent_as_one_line(text):
    """What is taken is what the strict decoder takes, and it is sent without line breaks or bits that mean nothing."""
    plain = text.replace("\n", "")
    try:
        content = binascii.a2b_base64(plain, strict_mode=True)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            blobs.decode(text)
    else:
        assert blobs.decode(text) == content
        assert blobs.on_one_line(text, content) == base64.b64encode(content).decode()


@pytest.mark.parametrize(
    "text", ["aGVsbG8", "aGVsbG8==", "=", "aG=VsbG8", "aGVs bG8=", "aGVs-G8=", "é", "aGVsbG8=x", "\t"]
)
def test_what_is_no_base64_is_refused(text):
    """Missing, excessive or misplaced padding and foreign characters are errors, never guessed at."""
    with pytest.raises(ValueError, match=r"."):
        blobs.decode(text)
