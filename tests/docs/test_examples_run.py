"""The example of every installed operation does what it says: the real engine runs it against a sandbox.

A new operation is covered as soon as it is installed.
"""

import json
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

import msgspec
import pytest

from bulk import operation
from bulk.capabilities import Returns
from bulk.cli.catalog import documentation
from bulk.engine.commands import run_manifest
from bulk.engine.surroundings import Surroundings
from bulk.manifest.reading import Overrides
from bulk.sandbox import Settings, running
from bulk.status import Silence

TOKEN = "sbx-site-admin"


@pytest.mark.parametrize("name", operation.names())
async def test_the_example_runs(name, tmp_path):
    """Its manifest, as `bulk operations NAME` shows it, ends succeeded or unchanged on a sandbox's standard data."""
    manifest = tmp_path / "example.yaml"
    manifest.write_text(documentation.example_manifest(documentation.describe(name)))
    run_dir = tmp_path / "run"
    async with running(Settings()) as sandbox:
        report = await run_manifest(
            manifest,
            overrides=Overrides(base_url=sandbox.base_url),
            run_dir=run_dir,
            display=Silence(),
            environ={"BULK_TOKEN": TOKEN},
            surroundings=Surroundings(),
        )
    (line,) = (json.loads(each) for each in (run_dir / "results.jsonl").read_text().splitlines())
    assert line["outcome"] in ("succeeded", "unchanged"), line["error"]
    assert (report.exit_code, report.state) == (0, "complete")
    assert report.requests > 0
    declared = returned(operation.find(name))
    msgspec.convert(line["result"], declared, strict=True)
    assert fields_of(declared) & names_of(line["result"])


def returned(found: operation.AnyOperation) -> Any:
    """The type that the class of an operation declares for its results."""
    (declared,) = (base for base in vars(type(found))["__orig_bases__"] if get_origin(base) is Returns)
    return get_args(declared)[0]


def fields_of(declared: Any) -> set[str]:
    """The fields that a type declares: its own, or those of the types that it is made of."""
    if is_typeddict(declared):
        return set(get_type_hints(declared))
    return set().union(*(fields_of(each) for each in get_args(declared)))


def names_of(result: Any) -> set[str]:
    """The names of members of a result, and of the objects that it holds."""
    inner = result if isinstance(result, list) else [each for each in result.values() if isinstance(each, dict)]
    own = set() if isinstance(result, list) else set(result)
    return own.union(*inner)


@pytest.mark.parametrize("name", operation.names())
def test_there_is_an_example(name):
    """Each has one, and it gives every field that is required."""
    found = operation.find(name)
    assert found.example or not any(field.required for field in msgspec.structs.fields(found.Item))
    msgspec.convert(dict(found.example), found.Item)
