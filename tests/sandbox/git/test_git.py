"""Real repositories on disk, judged by the real `git`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bulk.sandbox.git.directory import GitStore
from bulk.sandbox.git.object_cache import ObjectCache
from bulk.sandbox.git.repository import Change, GitRepository, blob_sha, commit_object
from bulk.sandbox.git.revision import (
    EXECUTABLE,
    GITLINK,
    SYMLINK,
    Kind,
    Person,
    Revision,
    WriteConflict,
    linked_file,
    path_fault,
)
from tests.sandbox.file_client import fsck, git

AT = 1_700_000_000
WRITER = Person("Ann Author", "ann@example.com", AT)
OTHER = Person("Cem Committer", "cem@example.com", AT + 60)


def store(root: Path) -> GitStore:
    """A store whose clock stands still."""
    return GitStore(root, lambda: AT + 100.5)


def write(repository: GitRepository, changes: dict[str, Change | None], branch: str = "main") -> str:
    """Commit, and return the sha."""
    return repository.commit(branch, changes, "change", WRITER, OTHER).sha


def revision_of(repository: GitRepository, name: str = "main") -> Revision:
    """What is called so; fails where nothing is."""
    found = repository.revision(name)
    assert found is not None
    return found


def test_the_first_commit_creates_main_and_git_reads_it_all(tmp_path: Path) -> None:
    """An empty repository's first commit makes the branch; author, committer, dates, message and bytes are as given."""
    repository = store(tmp_path).create(7, "acme", "api")
    home = tmp_path / "acme" / "api.git"
    assert repository.is_empty()
    assert repository.revision("main") is None
    assert git(home, "symbolic-ref", "HEAD") == "refs/heads/main"
    files = {"a/b/c.txt": Change(b"deep\n"), "a.txt": Change("ü\n".encode()), "run": Change(b"#!\n", EXECUTABLE)}
    made = repository.commit("main", files, "First: ü\n\nwhy", WRITER, OTHER)
    assert git(home, "log", "-1", "--format=%H|%an|%ae|%at|%cn|%ce|%ct|%P|%T|%B").rstrip() == (
        f"{made.sha}|Ann Author|ann@example.com|{AT}|Cem Committer|cem@example.com|{AT + 60}||{made.tree}|"
        "First: ü\n\nwhy"
    )
    assert git(home, "ls-tree", "-r", "--name-only", "main").split() == ["a.txt", "a/b/c.txt", "run"]
    assert git(home, "cat-file", "blob", "main:a/b/c.txt") == "deep"
    assert not fsck(home)
    assert not repository.is_empty()
    assert repository.commit_record(made.sha) == store(tmp_path).open(7).commit_record(made.sha) == made


def test_a_commit_has_the_former_tip_as_parent_and_leaves_other_files_alone(tmp_path: Path) -> None:
    """History is a line: each commit names the one before, and what it does not change stays."""
    repository = store(tmp_path).create(7, "acme", "api")
    first = write(repository, {"one": Change(b"1"), "d/two": Change(b"2")})
    second = write(repository, {"d/three": Change(b"3")})
    assert repository.commit_record(second).parents == (first,)
    assert git(tmp_path / ".by-id" / "7.git", "diff", "--name-status", first, second) == "A\td/three"


def test_a_deletion_takes_empty_directories_with_it(tmp_path: Path) -> None:
    """No tree without entries stays behind, except the root when the last file goes."""
    repository = store(tmp_path).create(7, "acme", "api")
    write(repository, {"a/b/c": Change(b"x"), "z": Change(b"z")})
    write(repository, {"a/b/c": None})
    assert revision_of(repository).entry("a") is None
    write(repository, {"z": None})
    assert not revision_of(repository).entries(revision_of(repository).entry("") or pytest.fail("no root"))
    assert not fsck(tmp_path / "acme" / "api.git")
    with pytest.raises(KeyError):
        write(repository, {"z": None})


@pytest.mark.parametrize("path", ["dir", "dir/file/below", "sub", "sub/inside"])
def test_a_write_never_replaces_a_directory_a_submodule_or_goes_through_a_file(tmp_path: Path, path: str) -> None:
    """Such a write is refused, and neither branch nor objects change."""
    repository = store(tmp_path).create(7, "acme", "api")
    tip = write(repository, {"dir/file": Change(b"x"), "sub": Change(b"1" * 40, GITLINK)})
    objects = git(tmp_path / ".by-id" / "7.git", "count-objects")
    with pytest.raises(WriteConflict):
        write(repository, {path: Change(b"new")})
    assert revision_of(repository).commit_sha == tip
    assert git(tmp_path / ".by-id" / "7.git", "count-objects") == objects


def test_modes_survive_a_new_content(tmp_path: Path) -> None:
    """An executable stays one; a symlink that gets file content becomes a file."""
    repository = store(tmp_path).create(7, "acme", "api")
    write(repository, {"run": Change(b"1", EXECUTABLE), "link": Change(b"run", SYMLINK)})
    write(repository, {"run": Change(b"2"), "link": Change(b"bytes")})
    listed = git(tmp_path / ".by-id" / "7.git", "ls-tree", "main").splitlines()
    assert [line.split()[0] for line in listed] == ["100644", "100755"]


def test_names_find_branches_before_tags_before_commits(tmp_path: Path) -> None:
    """A name means the branch, then the tag, then the commit that begins so."""
    repository, home = store(tmp_path).create(7, "acme", "api"), tmp_path / ".by-id" / "7.git"
    first = write(repository, {"f": Change(b"1")})
    second = write(repository, {"f": Change(b"2")})
    repository.point("refs/heads/both", second)
    repository.point("refs/tags/both", first)
    repository.point("refs/heads/team/x", first)
    git(home, "-c", "user.name=t", "-c", "user.email=t@x", "tag", "-a", "annotated", "-m", "note", first)
    expected = {
        "main": second,
        "both": second,
        "refs/tags/both": first,
        "tags/both": first,
        "heads/main": second,
        "team/x": first,
        "annotated": first,
        first: first,
        first[:7]: first,
        first.upper(): first,
    }
    assert {name: revision_of(repository, name).commit_sha for name in expected} == expected
    absent = ["nope", first[:6], "0" * 40, "team", "../HEAD", "HEAD/x", "a b", "x" * 300, "main/below", ""]
    assert [name for name in absent if repository.revision(name)] == []
    assert repository.has_branch("both")
    assert not repository.has_branch("annotated")


def test_a_branch_tells_when_it_moved_by_the_stores_clock(tmp_path: Path) -> None:
    """`changed_at` of a branch is the store's time of the write; of a commit, its own date."""
    repository = store(tmp_path).create(7, "acme", "api")
    sha = write(repository, {"f": Change(b"1")})
    assert revision_of(repository).changed_at == AT + 100.5
    assert revision_of(repository, sha).changed_at == OTHER.at


def test_repacked_repositories_are_read_and_written_as_before(tmp_path: Path) -> None:
    """`git gc` in the state directory, which packs objects and refs, changes nothing for the sandbox."""
    repository, home = store(tmp_path).create(7, "acme", "api"), tmp_path / ".by-id" / "7.git"
    write(repository, {f"d/{number}": Change(b"%d" % number) for number in range(20)})
    git(home, "gc", "--quiet")
    assert not (home / "refs" / "heads" / "main").exists()
    repository.close()
    reopened = store(tmp_path)
    again = reopened.open(7)
    entry = revision_of(again).entry("d/7")
    assert entry is not None
    assert (revision_of(again).read(entry), revision_of(again).size(entry)) == (b"7", 1)
    assert revision_of(again).changed_at == OTHER.at
    write(again, {"d/7": Change(b"seven")})
    assert git(home, "cat-file", "blob", "main:d/7") == "seven"
    assert not fsck(home)
    reopened.close()


def test_links_lead_to_files_and_nowhere_else(tmp_path: Path) -> None:
    """A symlink leads to a normal file of the same revision, over links, never outside or round in circles."""
    repository = store(tmp_path).create(7, "acme", "api")
    links = {
        "a/up": b"../file",
        "a/chain": b"up",
        "a/outside": b"../../file",
        "a/absolute": b"/file",
        "a/directory": b".",
        "a/missing": b"gone",
        "a/dots": b"..x",
        "a/loop": b"loop",
    }
    write(
        repository,
        {
            "file": Change(b"x"),
            "a/..x": Change(b"y"),
            **{path: Change(target, SYMLINK) for path, target in links.items()},
        },
    )
    revision = revision_of(repository)
    led = {path: linked_file(revision, entry) for path in links if (entry := revision.entry(path))}
    assert {path: found.path for path, found in led.items() if found} == {
        "a/up": "file",
        "a/chain": "file",
        "a/dots": "a/..x",
    }
    assert len(led) == len(links)


def test_a_writer_killed_at_any_moment_leaves_a_sound_repository(tmp_path: Path) -> None:
    """After SIGKILL in the middle of commits the branch is a whole commit, and the next write goes through."""
    program = (
        "import sys, time; from pathlib import Path\n"
        "from tests.sandbox.git.test_git import store, write, Change\n"
        "repository = store(Path(sys.argv[1])).create(7, 'acme', 'api')\n"
        "for number in range(100000):\n"
        "    write(repository, {f'd{number % 5}/f{number}': Change(b'%d' % number)})\n"
        "    print(number, flush=True)\n"
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, cwd=root, text=True
    ) as writer:
        assert writer.stdout is not None
        seen = [next(writer.stdout) for _ in range(40)]
        os.kill(writer.pid, signal.SIGKILL)
        seen += writer.stdout.readlines()
    home = tmp_path / "acme" / "api.git"
    assert not fsck(home)
    assert int(git(home, "rev-list", "--count", "main")) in (len(seen), len(seen) + 1)
    (home / "refs" / "heads" / "main.lock").write_bytes(b"half")
    assert write(store(tmp_path).open(7), {"after": Change(b"x")}) == git(home, "rev-parse", "main")


def test_a_branch_moves_by_one_rename(tmp_path: Path) -> None:
    """The file of a branch is never written to: who has it open, or another link to it, keeps the old commit."""
    repository, home = store(tmp_path).create(7, "acme", "api"), tmp_path / ".by-id" / "7.git"
    old = write(repository, {"f": Change(b"1")})
    (tmp_path / "seen").hardlink_to(home / "refs" / "heads" / "main")
    new = write(repository, {"f": Change(b"2")})
    assert (tmp_path / "seen").read_text().strip() == old
    assert git(home, "rev-parse", "main") == new


def test_digits_that_fit_two_commits_mean_none(tmp_path: Path) -> None:
    """A short sha means a commit only where it is the only one."""
    repository = store(tmp_path).create(7, "acme", "api")
    empty_tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    # Found by trying: these two messages give shas that begin alike.
    alike = [commit_object(empty_tree, (), message, WRITER, WRITER) for message in ("18588", "21429")]
    repository.add(alike)
    first, second = (commit.id.decode() for commit in alike)
    assert first[:7] == second[:7] == "fb46410"
    assert repository.revision(first[:7]) is None
    assert revision_of(repository, first[:12]).commit_sha == first
    assert revision_of(repository, second).commit_sha == second


def test_a_repository_half_made_is_made_again(tmp_path: Path) -> None:
    """What a killed process left beside the place of a new repository is thrown away; nobody ever sees it."""
    draft = tmp_path / ".by-id" / "7.draft"
    draft.mkdir(parents=True)
    (draft / "HEAD").write_text("broken")
    assert 7 not in store(tmp_path)
    store(tmp_path).create(7, "acme", "api")
    assert git(tmp_path / "acme" / "api.git", "rev-parse", "--is-bare-repository") == "true"
    assert not draft.exists()


def test_links_for_people_follow_names(tmp_path: Path) -> None:
    """A renamed owner's repositories are found under the new name only; `relink` mends what an earlier end left."""
    repositories = store(tmp_path)
    write(repositories.create(7, "old", "api"), {"f": Change(b"1")})
    repositories.rename_owner("old", "new")
    repositories.rename_owner("old", "new")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("[!.]*/*")) == ["new/api.git"]
    assert git(tmp_path / "new" / "api.git", "log", "--format=%s", "main") == "change"
    (tmp_path / "stale").mkdir()
    (tmp_path / "stale" / "api.git").symlink_to("../.by-id/9.git")
    repositories.relink({7: ("newest", "web"), 8: ("newest", "absent")})
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("[!.]*/*")) == ["newest/web.git"]
    assert not (tmp_path / "stale").exists()
    with pytest.raises(KeyError):
        repositories.open(8)


def test_a_blob_sha_is_gits(tmp_path: Path) -> None:
    """`blob_sha` is what `git hash-object` says."""
    for data in (b"", b"x", bytes(range(256)) * 40):
        (tmp_path / "file").write_bytes(data)
        assert blob_sha(data) == git(tmp_path, "hash-object", "file")


@pytest.mark.parametrize(
    "path",
    [
        *("", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "nul\0", "x" * 4097),
        *(".git", ".GIT/config", "a/.git/x", "git~1", ".git ", ".git.", ".g\u200cit"),
    ],
)
def test_paths_that_git_can_not_hold_are_refused(path: str) -> None:
    """Empty and dotted segments, `.git` in every spelling, NUL and overlong paths have a reason why not."""
    assert path_fault(path)


@pytest.mark.parametrize(
    "path", ["a", ".github/workflows/ci.yml", "a b/ü", ".gitignore", "git", "a..b", "-", "\\", "…"]
)
def test_ordinary_paths_are_writable(path: str) -> None:
    """Dots within a name, spaces and other scripts are nothing special."""
    assert path_fault(path) is None


paths = st.lists(st.sampled_from(["a", "b", "c.txt", "Ü"]), min_size=1, max_size=3).map("/".join)
steps = st.lists(st.tuples(paths, st.none() | st.binary(max_size=3)), min_size=1, max_size=12)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_a_repository_holds_what_a_dictionary_would(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bytes | None]]
) -> None:
    """After any writes and deletions the tree is what was asked for, without what was refused, and sound."""
    root = tmp_path_factory.mktemp("model")
    repository, model = store(root).create(1, "acme", "api"), dict[str, bytes]()
    for path, data in steps:
        clashes = any(held.startswith(f"{path}/") or path.startswith(f"{held}/") for held in model)
        try:
            write(repository, {path: None if data is None else Change(data)})
        except (WriteConflict, KeyError):
            assert clashes or (data is None and path not in model)
            continue
        assert not clashes
        if data is None:
            del model[path]
        else:
            model[path] = data
    home = root / ".by-id" / "1.git"
    if git(home, "for-each-ref"):
        listed = git(home, "ls-tree", "-r", "-z", "main").split("\0")[:-1]
        assert {line.split("\t")[1]: line.split()[2] for line in listed} == {
            path: blob_sha(data) for path, data in model.items()
        }
        revision = revision_of(repository)
        for path, data in model.items():
            entry = revision.entry(path)
            assert entry is not None
            assert (entry.kind, revision.read(entry), revision.size(entry)) == (Kind.FILE, data, len(data))
    assert not fsck(home)


@given(puts=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60)), max_size=40))
def test_the_cache_stays_within_its_weight(puts: list[tuple[int, int]]) -> None:
    """Whatever is put, no more than the limit is held, and what was put last is there unless it alone is too heavy."""
    cache = ObjectCache(100)
    for key, weight in puts:
        cache.put(key, (key, weight), weight)
        assert cache.held_bytes <= 100
        assert cache.get(key) == (key, weight)
    cache.put("heavy", object(), 101)
    assert cache.get("heavy") is None


@pytest.mark.parametrize("data", [b"", b"x", b"word " * 900, bytes(range(256)) * 2000, b"0" * 3_000_000])
def test_sizes_are_read_without_the_bytes(tmp_path: Path, data: bytes) -> None:
    """The size of a file that nobody read yet is right, however it was compressed."""
    write(store(tmp_path).create(7, "acme", "api"), {"f": Change(data)})
    revision = revision_of(store(tmp_path).open(7))
    entry = revision.entry("f")
    assert entry is not None
    assert revision.size(entry) == len(data)
