"""The manifests that `bulk demo` runs, and the migration: they can be used as they stand, and do what they say."""

import csv
import gzip
import io
import json
from collections import Counter
from pathlib import Path

import pytest
import zstandard
from examples import make_items
from ruamel.yaml import YAML

from bulk.check.checking import check
from bulk.manifest.reading import Overrides, read_manifest

EXAMPLES = Path(make_items.__file__).parent
MIGRATION = {
    "configuration": 1,
    "organizations": 50,
    "teams": 150,
    "attach": 0,
    "files": 400,
    "rulesets": 0,
    "webhooks": 0,
    "snapshots": 50,
}
"""Items of each job that are known before it runs: the other jobs make theirs from the organizations."""
SHARED = ("job teams: 147 items are sent together with the one before, which saves 147 of its requests",)
BASE_URL = "http://127.0.0.1:1/api/v3"


def _checked(name, tmp_path):
    manifest = read_manifest(EXAMPLES / name, Overrides(base_url=BASE_URL), {"BULK_TOKEN": "x"})
    found = check(manifest, tmp_path, stdin=None, progress=None)
    return {job.name: checked for job, checked in zip(manifest.jobs, found.jobs, strict=True)}, found.notes


@pytest.mark.parametrize(
    ("name", "items", "lanes", "longest"),
    [
        ("readmes.yaml", {"readmes": 2_000}, {"readmes": 0}, None),
        ("contents.yaml", {"codeowners": 25, "policies": 275}, {"codeowners": 25, "policies": 0}, 12),
        ("snapshots.yaml", {"snapshots": 500}, {"snapshots": 500}, 1),
        ("organizations.yaml", {"create": 40}, {"create": 40}, 1),
        ("migration.yaml", MIGRATION, MIGRATION | {"teams": 3, "files": 100}, 1),
    ],
)
def test_an_example_passes_the_check(name, items, lanes, longest, tmp_path):
    """Every item and file is usable, of the number and with the lanes it should have; the only remarks are savings."""
    checked, notes = _checked(name, tmp_path)
    assert {job: found.items for job, found in checked.items()} == items
    assert {job: found.lanes for job, found in checked.items()} == lanes
    first = next(iter(checked.values()))
    assert (first.longest_lane and first.longest_lane[1]) == longest
    assert notes == (SHARED if name == "migration.yaml" else ())


def test_there_are_no_other_examples():
    """Every manifest beside them is one of the five; items and files lie in folders of their own."""
    assert {path.name for path in EXAMPLES.glob("*.yaml")} == {
        "contents.yaml",
        "migration.yaml",
        "organizations.yaml",
        "readmes.yaml",
        "snapshots.yaml",
    }


def test_the_items_are_what_their_script_makes(tmp_path):
    """Whoever changes one of them has to change the other."""
    make_items.write(tmp_path)
    made = {path.name: _decoded(path) for path in tmp_path.iterdir()}
    kept = {path.name: _decoded(path) for path in (EXAMPLES / "items").iterdir()}
    assert made == kept


def test_the_writes_go_to_25_repositories_under_many_spellings():
    """300 writes, 12 for each repository, none of them to the same file twice."""
    rows = list(csv.DictReader(io.StringIO((EXAMPLES / "items" / "policies.csv").read_text())))
    inline = YAML(typ="safe").load(EXAMPLES / "contents.yaml")["jobs"]["codeowners"]["items"]
    names = [(row["owner"], row["repo"]) for row in rows] + [("acme-fleet", item["repo"]) for item in inline]
    folded = Counter((owner.casefold(), repo.casefold()) for owner, repo in names)
    assert set(folded.values()) == {12}
    assert len(folded) == 25
    assert len(set(names)) > 2 * len(folded)
    assert len({(row["repo"].casefold(), row["path"]) for row in rows}) == len(rows)


def test_every_manifest_teaches():
    """Comments explain what is done; at least one line in four is one."""
    for path in EXAMPLES.glob("*.yaml"):
        lines = [line for line in path.read_text().splitlines() if line.strip() and "{repo: " not in line]
        assert sum("#" in line for line in lines) * 4 >= len(lines), path.name


def test_they_are_small():
    """All of it together is below 300 kB."""
    assert sum(path.stat().st_size for path in EXAMPLES.rglob("*") if path.suffix != ".pyc") < 300_000


def _decoded(path):
    data = path.read_bytes()
    match path.suffix:
        case ".gz":
            return [json.loads(line) for line in gzip.decompress(data).splitlines()]
        case ".zst":
            with zstandard.ZstdDecompressor().stream_reader(data) as stream:
                return [json.loads(line) for line in stream.read().splitlines()]
    return data.decode()
