import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bulk.ledger import saved_files
from bulk.ledger.saved_files import saved_parts
from bulk.model import BodyFile


@pytest.fixture
def run_fd(tmp_path):
    """The run directory `tmp_path/run`, open."""
    (tmp_path / "run").mkdir()
    fd = os.open(tmp_path / "run", os.O_RDONLY)
    yield fd
    os.close(fd)


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a directory and what is in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("acme/api.md", ("acme", "api.md")),
        ("/acme//api.md/", ("acme", "api.md")),
        ("../../x", ("%2E%2E", "%2E%2E", "x")),
        ("./...", ("%2E", "%2E%2E%2E")),
        (".hidden", (".hidden",)),
        ("a\x00b\\c\n", ("a%00b%5Cc%0A",)),
        ("\ud800", ("%ED%A0%80",)),
        ("CON/aux.txt/console", ("%43ON", "%61ux.txt", "console")),
        ("end./end ", ("end%2E", "end%20")),
        ("", ("_",)),
        ("//", ("_",)),
        ("é/e\u0301", ("é", "e\u0301")),
    ],
)
def test_names_become_plain_components(path: str, parts: tuple[str, ...]):
    """Ordinary names stay as they are; what a file system could misread is percent-encoded (failures.md row 67)."""
    assert saved_parts(path) == parts


@given(
    path=st.text()
    | st.text(alphabet="./\\\x00 ~aé\ud800", max_size=300)
    | st.lists(st.text(), min_size=40).map("/".join)
)
@example("a" * 300)
@example("é" * 200 + ".md")
@example("/".join("a" * 2000))
def test_any_name_is_a_path_below(path: str):
    """Whatever the name, it gives a bounded number of names that every file system takes, none of them a step up."""
    parts = saved_parts(path)
    assert 1 <= len(parts) <= 1000
    for part in parts:
        assert part not in ("", ".", "..")
        assert "/" not in part
        assert "\x00" not in part
        assert len(part.encode()) <= 255


def test_long_names_stay_different_and_keep_their_ending():
    """Two long names that differ at their ends are two names, with the extension where there is one."""
    one, two = (saved_parts("a" * 300 + end + ".md")[0] for end in "xy")
    assert one != two
    assert one.endswith(".md")


def test_files_are_private_whatever_the_umask(run_fd, tmp_path):
    """Saved files are 0600 and their directories 0700 under umask 0 and 0777 (failures.md row 64)."""
    before = os.umask(0)
    try:
        saved_files.save(run_fd, [("open/a", b"1")])
        os.umask(0o777)
        saved_files.save(run_fd, [("closed/a", b"2")])
    finally:
        os.umask(before)
    saved = tmp_path / "run" / "saved"
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (saved, saved / "open", saved / "closed")}
    assert modes == {0o700}
    assert {stat.S_IMODE((saved / name / "a").stat().st_mode) for name in ("open", "closed")} == {0o600}


def test_a_file_is_replaced_as_a_whole(run_fd, tmp_path):
    """An older file of the same name gives way, and nothing else is left behind."""
    saved_files.save(run_fd, [("a/b", b"older and longer")])
    saved_files.save(run_fd, [("a/b", b"new"), ("a/c", b"")])
    assert files(tmp_path / "run") == {"saved/a/b": b"new", "saved/a/c": b""}


def test_a_body_in_a_file_is_moved_to_its_place(run_fd, tmp_path):
    """A BodyFile becomes the saved file, over an older one too; a group that is tried again finds it done."""
    (tmp_path / "run" / "arriving").mkdir()
    (tmp_path / "run" / "arriving" / "1").write_bytes(b"long")
    body = BodyFile(name="arriving/1", size_bytes=4, sha256="", blob_sha="")
    moved: set[str] = set()
    saved_files.save(run_fd, [("a/b", b"older")])
    for _ in range(2):
        saved_files.save(run_fd, [("a/b", body), ("c", b"short")], moved)
        assert files(tmp_path / "run") == {"saved/a/b": b"long", "saved/c": b"short"}
    with pytest.raises(FileNotFoundError):
        saved_files.save(run_fd, [("a/b", body)])


@pytest.mark.parametrize("order", [1, -1])
def test_a_file_and_a_directory_of_one_name_both_find_a_place(run_fd, tmp_path, order: int):
    """`docs` and `docs/a.md` are both kept, whichever comes first, and again when they come again."""
    wanted = [("docs", b"listing"), ("docs/a.md", b"file")][::order]
    for _ in range(2):
        saved_files.save(run_fd, wanted)
    found = files(tmp_path / "run" / "saved")
    assert set(found) == ({"docs", "docs~/a.md"} if order == 1 else {"docs~", "docs/a.md"})
    assert sorted(found.values()) == [b"file", b"listing"]


@pytest.mark.parametrize("order", [1, -1])
def test_the_longest_names_find_a_place_too(run_fd, tmp_path, order: int):
    """A file and a directory of one name that is as long as names may be are both kept."""
    name = "é" * 127 + "a"
    saved_files.save(run_fd, [(name, b"1"), (f"{name}/b", b"2")][::order])
    assert sorted(files(tmp_path / "run" / "saved").values()) == [b"1", b"2"]


@pytest.mark.parametrize("place", ["saved", "saved/a", "saved/a/b"])
def test_a_link_in_place_of_a_directory_is_refused(run_fd, tmp_path, place: str):
    """A symbolic link on the way is not followed, nothing appears at its target, and the error names it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    link = tmp_path / "run" / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)
    with pytest.raises(OSError, match="symbolic") as refused:
        saved_files.save(run_fd, [("a/b/c", b"x")])
    assert (refused.value.errno, refused.value.filename) == (errno.ELOOP, place)
    assert list(outside.iterdir()) == []


def test_a_link_in_place_of_a_file_is_replaced(run_fd, tmp_path):
    """A symbolic link where the file belongs, or the temporary file, is replaced; its target stays as it is."""
    target = tmp_path / "target"
    target.write_bytes(b"mine")
    (tmp_path / "run" / "saved").mkdir()
    (tmp_path / "run" / "saved" / "a").symlink_to(target)
    (tmp_path / "run" / saved_files.TEMPORARY).symlink_to(target)
    saved_files.save(run_fd, [("a", b"new")])
    assert target.read_bytes() == b"mine"
    assert not (tmp_path / "run" / "saved" / "a").is_symlink()
    assert files(tmp_path / "run") == {"saved/a": b"new"}


@given(path=st.text(alphabet="./\\ ~aé\ud800", min_size=1, max_size=30))
def test_every_name_lands_below_saved(tmp_path_factory, path: str):
    """Whatever the name, exactly one file appears, below `saved/`."""
    folder = tmp_path_factory.mktemp("run")
    fd = os.open(folder, os.O_RDONLY)
    try:
        saved_files.save(fd, [(path, b"x")])
    finally:
        os.close(fd)
    assert len(files(folder / "saved")) == len(files(folder.parent / folder.name)) == 1
