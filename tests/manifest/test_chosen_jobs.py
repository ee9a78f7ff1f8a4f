"""`--job` and `--with-needs`: which jobs of a manifest are read, and what the others mean for them."""

from pathlib import Path
from typing import Any

import pytest

from bulk.check.checking import check
from bulk.errors import ManifestError, UsageError
from bulk.manifest.manifest import Manifest
from bulk.manifest.reading import Overrides, read_manifest

READ = "operation: readme.get, items: [{owner: a, repo: b}]"
TEXT = f"""\
version: 1
platform: {{base_url: 'https://api.example.com'}}
jobs:
  first: {{{READ}}}
  second: {{{READ}, needs: [first]}}
  third: {{{READ}, needs: [second]}}
  hooks: {{operation: webhook.list, items: [{{org: acme}}]}}
  made: {{operation: webhook.get, items: {{from: hooks, map: {{org: item.org, hook_id: result.id}}}}, needs: [first]}}
  broken: {{operation: readme.get, items: not-there.csv}}
"""


def read(folder: Path, *jobs: str, **more: Any) -> Manifest:
    """The manifest, with jobs chosen."""
    (folder / "m.yaml").write_text(TEXT)
    return read_manifest(folder / "m.yaml", Overrides(jobs=jobs, **more), {})


def names(manifest: Manifest) -> list[str]:
    """Of its jobs, in running order."""
    return [job.name for job in manifest.jobs]


def test_only_chosen_jobs_are_read(tmp_path):
    """What is wrong with another job does not matter; needs that are left out are told, and not waited for."""
    with pytest.raises(ManifestError, match=r"broken\.items"):
        read(tmp_path)
    manifest = read(tmp_path, "third", "first")
    assert (names(manifest), manifest.jobs[1].needs) == (["first", "third"], ())
    assert manifest.chosen == ("first", "third")
    assert manifest.notes == ("job third: needs second, which --job leaves out; --with-needs takes it along",)
    (tmp_path / "run").mkdir()
    assert manifest.notes[0] in check(manifest, tmp_path / "run").notes


def test_needs_are_taken_along(tmp_path):
    """`--with-needs` adds what a job needs, what that needs, and where its items come from."""
    assert names(read(tmp_path, "third", with_needs=True)) == ["first", "second", "third"]
    manifest = read(tmp_path, "made", with_needs=True)
    assert (names(manifest), manifest.notes) == (["first", "hooks", "made"], ())


def test_items_must_come_from_somewhere(tmp_path):
    """A job whose items come from one that is left out is refused with the way out."""
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, "made")
    assert (
        str(caught.value)
        == f"{tmp_path}/m.yaml:8: jobs.made.items.from: 'hooks' is left out by --job; add --with-needs"
    )


@pytest.mark.parametrize(
    ("jobs", "more", "words"),
    [
        (("frist",), {}, "--job frist: unknown job; did you mean first?"),
        (("zzz",), {}, "--job zzz: unknown job; expected one of broken, first, hooks"),
        ((), {"with_needs": True}, "--with-needs: takes along what chosen jobs need; choose some with --job NAME"),
    ],
)
def test_jobs_that_are_not_there(tmp_path, jobs, more, words):
    """The message names the option and the way out."""
    with pytest.raises(UsageError) as caught:
        read(tmp_path, *jobs, **more)
    assert words in str(caught.value)


def test_the_choice_is_part_of_what_a_manifest_means(tmp_path):
    """Other jobs are another manifest; the same ones, chosen in another way, are the same."""
    assert read(tmp_path, "first").digest != read(tmp_path, "first", "second").digest
    assert read(tmp_path, "second", with_needs=True).digest == read(tmp_path, "second", "first").digest
