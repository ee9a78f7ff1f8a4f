"""Files that items name: found when they are checked, the same when they are sent, never from outside the folder."""

import os

import pytest

from bulk.bundle import item_files
from bulk.bundle.item_files import load_files, read_inside
from bulk.bundle.streams import LaneIndex
from bulk.capabilities import FileError
from bulk.errors import ManifestError
from tests.manifest.making import WriteThing, a_job, check_in, stream, thing

WRITE = WriteThing()


def folder_in(tmp_path):
    folder = tmp_path / "manifest"
    (folder / "files").mkdir(parents=True)
    (folder / "files" / "a.txt").write_text("hello")
    return folder


def items_of(*names):
    return [{"place": name, "text_file": name} for name in names]


def flaw_of(folder, name):
    with pytest.raises(ManifestError) as caught:
        check_in(folder, a_job(WRITE, items_of(name)))
    (flaw,) = caught.value.flaws
    assert flaw.field == "text_file"
    return flaw.message


def test_what_was_checked_is_sent(tmp_path):
    """A worker gets the item with the file's content inline, by the lane index and by the stream alike."""
    folder = folder_in(tmp_path)
    checked, workspace = check_in(folder, a_job(WRITE, items_of("files/a.txt")))
    (entry,) = stream(checked, workspace)
    assert thing(entry).text is None
    item = thing(load_files(folder, WRITE, entry))
    assert (item.text, item.text_file) == ("hello", None)
    with LaneIndex(checked, workspace) as index:
        (lane,) = index.lanes(0, after=0, count=5)
        ((_, same),) = index.entries(lane.key, after=-1, count=5)
    assert same == entry


def test_a_file_that_changed_is_not_sent(tmp_path):
    """At its time of sending a file must hold what it held when it was checked (failures.md row 59)."""
    folder = folder_in(tmp_path)
    checked, workspace = check_in(folder, a_job(WRITE, items_of("files/a.txt")))
    (entry,) = stream(checked, workspace)
    (folder / "files" / "a.txt").write_text("hellp")
    with pytest.raises(FileError, match=r"text_file: 'files/a.txt' has changed since it was checked"):
        load_files(folder, WRITE, entry)
    (folder / "files" / "a.txt").unlink()
    with pytest.raises(FileError, match="there is no file"):
        load_files(folder, WRITE, entry)


def test_links_within_the_folder_are_followed(tmp_path):
    """A link that stays within the folder is fine; an absolute name within it too."""
    folder = folder_in(tmp_path)
    (folder / "link").symlink_to(folder / "files" / "a.txt")
    (folder / "dir").symlink_to("files")
    for name in ("link", "dir/a.txt", str(folder / "files" / "a.txt"), "files/../files/a.txt"):
        assert read_inside(folder, name) == b"hello"


def test_nothing_outside_the_folder_is_read(tmp_path):
    """Neither dots nor absolute names nor links lead out of the manifest's folder."""
    folder = folder_in(tmp_path)
    (tmp_path / "secret").write_text("outside")
    (tmp_path / "manifest-too").mkdir()
    (tmp_path / "manifest-too" / "x").write_text("outside")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "dir").symlink_to(tmp_path)
    for name in ("../secret", str(tmp_path / "secret"), "link", "dir/secret", "../manifest-too/x"):
        assert "outside the manifest's folder" in flaw_of(folder, name)


def test_what_is_no_file_is_refused(tmp_path):
    """A missing file, a folder, a FIFO, a device, a circle of links, an unreadable name: each with its reason."""
    folder = folder_in(tmp_path)
    os.mkfifo(folder / "pipe")
    (folder / "circle").symlink_to("circle")
    assert "there is no file" in flaw_of(folder, "gone")
    assert "is not a regular file" in flaw_of(folder, "files")
    assert "is not a regular file" in flaw_of(folder, "pipe")
    assert "can't be read" in flaw_of(folder, "circle")
    assert "can't be read" in flaw_of(folder, "x" * 5000)
    assert "is not a file name" in flaw_of(folder, "a\0b")


def test_a_file_above_100_mib_is_refused(tmp_path):
    """The largest file that may be sent is 100 MiB."""
    folder = folder_in(tmp_path)
    with (folder / "large").open("wb") as file:
        file.truncate(item_files.MOST_FILE_BYTES + 1)
    assert "the most is 104,857,600 (100 MiB)" in flaw_of(folder, "large")


def test_bad_content_is_found_by_the_check(tmp_path):
    """What the operation can't send is told before anything is sent."""
    folder = folder_in(tmp_path)
    (folder / "b.txt").write_text("bad thing")
    assert flaw_of(folder, "b.txt") == "'b.txt': begins with bad"


def test_a_file_is_read_once_for_many_items(tmp_path):
    """The same file in many items is read and hashed once; its flaw is told for each of them."""
    folder = folder_in(tmp_path)
    reads = []

    class Counting(WriteThing):
        def with_file(self, item, field, data):
            reads.append(data)
            return super().with_file(item, field, data)

    check_in(folder, a_job(Counting(), items_of(*["files/a.txt"] * 50)))
    assert len(reads) == 1
    (folder / "b.txt").write_text("bad thing")
    with pytest.raises(ManifestError) as caught:
        check_in(folder, a_job(WRITE, items_of("b.txt", "files/a.txt", "b.txt")))
    assert len(caught.value.flaws) == 2
