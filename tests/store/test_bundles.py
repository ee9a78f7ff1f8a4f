"""Bundles: what was uploaded comes back, byte for byte, or not at all."""

import os

import pytest

from bulk.errors import RunDirectoryError, UsageError
from bulk.store import bundles
from tests.store.places import connection_to

MIB = 1024 * 1024


@pytest.fixture
def store(shared_store):
    """A connection."""
    with connection_to(shared_store) as made:
        yield made


@pytest.fixture
def folder(tmp_path):
    """A bundle: an empty file, a short one, one of several parts."""
    made = tmp_path / "bundle"
    (made / "files").mkdir(parents=True)
    (made / "empty").touch()
    (made / "manifest.yaml").write_text("version: 1\n")
    (made / "files" / "large").write_bytes(os.urandom(2 * MIB) + b"x" * MIB + b"end")
    return made


NAMES = ["empty", "manifest.yaml", "files/large"]


def test_a_bundle_comes_back(store, folder, tmp_path):
    """Every file is there with its content, private; the digest stands for names and contents."""
    digest = bundles.upload(store, folder, NAMES)
    target = tmp_path / "target"
    assert sorted(bundles.download(store, digest, target)) == sorted(NAMES)
    assert bundles.digest_of(target, NAMES) == digest
    assert (target / "files" / "large").stat().st_mode & 0o777 == 0o600
    (folder / "manifest.yaml").rename(folder / "manifest.yml")
    assert bundles.digest_of(folder, ["empty", "manifest.yml", "files/large"]) != digest


def test_an_upload_that_broke_off_goes_on(store, folder):
    """Parts that are there are not sent again."""
    digest = bundles.upload(store, folder, NAMES)
    with store.using() as connection:
        connection.execute("DELETE FROM bundle_part WHERE bundle = %s AND no = 1", (digest,))
        (before,) = connection.execute("SELECT max(at) FROM bundle_part WHERE bundle = %s", (digest,)).fetchone()
    assert bundles.upload(store, folder, NAMES) == digest
    with store.using() as connection:
        query = "SELECT name, no FROM bundle_part WHERE bundle = %s AND at > %s"
        assert connection.execute(query, (digest, before)).fetchall() == [("files/large", 1)]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE bundle_part SET data = substr(data, 1, 10) WHERE bundle = %s AND no = 0 AND name = 'files/large'",
        "DELETE FROM bundle_part WHERE bundle = %s AND no = 1",
        "DELETE FROM bundle_part WHERE bundle = %s AND name = 'empty'",
        "UPDATE bundle_part SET name = '../../escape' WHERE bundle = %s AND name = 'empty'",
        "UPDATE bundle_part SET name = '/escape' WHERE bundle = %s AND name = 'empty'",
        "DELETE FROM bundle_part WHERE bundle = %s",
    ],
)
def test_a_bundle_that_is_not_as_it_was_is_refused(store, folder, tmp_path, damage):
    """Parts that are cut, gone or renamed are noticed, and no file lands outside of the folder."""
    (folder / "empty").write_text(damage)
    digest = bundles.upload(store, folder, NAMES)
    with store.using() as connection:
        connection.execute(damage.encode(), (digest,))
    target = tmp_path / "a" / "b"
    with pytest.raises(RunDirectoryError, match=r"not as it was uploaded|has no bundle"):
        bundles.download(store, digest, target)
    assert not (tmp_path / "escape").exists()


def test_what_is_too_large_is_refused(store, folder):
    """A bundle above 256 MiB is not begun."""
    with (folder / "empty").open("wb") as file:
        file.truncate(bundles.MOST_BYTES)
    with pytest.raises(UsageError, match="the bundle has 259 MiB; a store takes 256 MiB"):
        bundles.upload(store, folder, NAMES)
