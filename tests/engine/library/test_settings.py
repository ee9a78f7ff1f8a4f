"""Settings of an engine: each reaches the run, and one that can't be used is refused by its name."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
import trustme

import bulk
from bulk.engine.library.settings import EngineSettings, overrides_from
from bulk.engine.origin import Origin
from bulk.manifest.reading import read_manifest
from tests.e2e.support.platform import ADMIN, Served

TOKEN = {"BULK_TOKEN": ADMIN}
URL = "http://127.0.0.1:9/api/v3"
ITEM = {"owner": "acme-eng", "repo": "hello-world"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base_url": "ftp://x/api/v3"}, r"^base_url: expected https"),
        ({"base_url": URL, "concurrency": 0}, r"^concurrency: "),
        ({"base_url": URL, "reserve": "100%"}, r"^reserve: expected a count or a share below 100%"),
        ({"base_url": URL, "failures": "many"}, r"^failures: "),
        ({"base_url": URL, "ca_bundle": "nowhere.pem"}, r"^ca_bundle: there is no such file"),
        ({"base_url": URL, "vendor": "other"}, r"^vendor: "),
        ({"base_url": URL, "credential": "sbx-token"}, r"^credential default: "),
        ({"base_url": URL, "credential": {"admin": "nothing"}}, r"^credential admin: "),
        ({}, r"^no platform is named: give base_url, or set BULK_BASE_URL"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(settings: Any, message: str) -> None:
    """A bad setting raises UsageError where the engine is made, and names the argument, no option."""
    with pytest.raises(bulk.UsageError, match=message) as caught:
        bulk.Engine(environ={}, **settings)
    assert "--" not in str(caught.value)


def test_a_setting_that_is_none_is_a_type_error() -> None:
    """A misspelled keyword is refused as any other of Python, with what was probably meant."""
    with pytest.raises(TypeError, match=r"reserv.*did you mean reserve\?"):
        bulk.Engine(base_url=URL, reserv=5)  # type: ignore[call-arg]


def test_settings_beat_the_manifest_and_what_is_left_out_is_the_manifests(tmp_path: Path) -> None:
    """Each setting reaches the manifest's place; what was not given stays as the manifest has it."""
    authority = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(authority))
    manifest = tmp_path / "manifest.yaml"
    limits = {"concurrency": 7, "reserve": "5%", "failures": 9}
    platform = {"base_url": "https://other.example.com/api/v3", "credentials": {"default": "file:token"}}
    job = {"readmes": {"operation": "readme.get", "items": [ITEM]}}
    manifest.write_text(json.dumps({"version": 1, "platform": platform, "limits": limits, "jobs": job}))

    def read(**settings: Any) -> Any:
        return read_manifest(manifest, overrides_from(cast("EngineSettings", {"base_url": URL, **settings}), {}), {})

    left = read()
    assert (left.limits.concurrency, left.limits.failures.count) == (7, 9)
    assert left.platform.credentials["default"].startswith("file:")
    given = read(concurrency=3, reserve=500, failures="1%", ca_bundle=authority, trust_env=True, credential="env:A")
    assert (given.limits.concurrency, given.limits.reserve.count, given.limits.failures.fraction) == (3, 500, 0.01)
    assert given.platform.ca_bundle == authority
    assert given.platform.trust_env is True
    assert given.platform.credentials["default"] == "env:A"
    again = Origin.of(given).overrides(overrides_from({"base_url": URL}, {}))
    assert (again.ca_bundle, again.trust_env) == (str(authority), True), "a retry needs them too"


@pytest.mark.anyio
async def test_the_limit_of_failures_stops_a_run(sandbox: Served) -> None:
    """`failures=` ends `map` with RunStopped once more items have failed."""
    missing = [{"owner": "acme-fleet", "repo": f"nowhere-{number}"} for number in range(200)]
    async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN, failures=3, concurrency=1) as engine:
        with pytest.raises(bulk.RunStopped, match=r"limits\.failures"):
            _ = [outcome async for outcome in engine.map("readme.get", missing)]


@pytest.mark.anyio
async def test_a_reserve_that_leaves_nothing_is_refused(sandbox: Served) -> None:
    """`reserve=` reaches the budget: where it leaves nothing, nothing is sent."""
    before = len(sandbox.requests())
    async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN, reserve=10_000_000) as engine:
        with pytest.raises(bulk.BudgetTooSmall):
            _ = [outcome async for outcome in engine.map("readme.get", [ITEM])]
    assert len(sandbox.requests()) == before
