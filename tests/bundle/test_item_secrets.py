"""Secrets that stand in an items file: the copy in the workspace has none, the item that is sent has them."""

import gzip
import json

import pytest

from bulk.bundle import item_secrets
from bulk.bundle.streams import LaneIndex
from bulk.errors import ManifestError, RunDirectoryError
from bulk_jobs.webhook_updates import UpdateWebhookConfig
from bulk_jobs.webhooks import CreateWebhook
from tests.manifest.making import a_job, check_in

SECRETS = ["canary-0", "env:HOOK", "canary-2", None, "file:canary"]
ITEMS = [
    {"org": "acme", "config": {"url": f"https://x.example/{n}", **({"secret": given} if given else {})}}
    for n, given in enumerate(SECRETS)
]
CSV = "org,config.url,config.secret\n" + "".join(
    f"acme,https://x.example/{n},{given or ''}\n" for n, given in enumerate(SECRETS)
)
FILES: dict[str, bytes] = {
    "a.csv": CSV.encode(),
    "a.yaml": "".join(f"- {json.dumps(item)}\n" for item in ITEMS).encode(),
    "a.json": json.dumps(ITEMS).encode(),
    "a.jsonl.gz": gzip.compress("\n\n".join(json.dumps(item) for item in ITEMS).encode()),
    "a.jsonl": "\n".join(json.dumps(item) for item in ITEMS).encode(),
}


@pytest.fixture(params=FILES)
def source(request, tmp_path):
    """An items file of each kind."""
    path = tmp_path / request.param
    path.write_bytes(FILES[request.param])
    return path


def read_again(checked, workspace):
    """The items, as the workers get them."""
    with LaneIndex(checked, workspace) as index:
        (lane,) = index.lanes(0, after=0, count=2)
        return [entry.item for _, entry in index.entries(lane.key, after=0, count=10)]


def test_the_copy_has_no_secret(source, tmp_path):
    """Whatever the kind of file, no file of the workspace holds one, and every item is given back as it was."""
    checked, workspace = check_in(tmp_path, a_job(CreateWebhook(), source))
    assert [item.config.secret for item in read_again(checked, workspace)] == SECRETS
    held = {path.name: path.read_bytes() for path in workspace.iterdir()}
    assert [name for name, data in held.items() if b"canary-" in data] == []
    assert ("items-x.jsonl" in held) == (source.suffix != ".jsonl")


def test_a_field_of_the_item_itself(tmp_path):
    """A secret may be a field of the item, not of an object within it."""
    path = tmp_path / "a.csv"
    path.write_text("org,hook_id,secret\nacme,7,canary-7\n")
    checked, workspace = check_in(tmp_path, a_job(UpdateWebhookConfig(), path))
    (item,) = read_again(checked, workspace)
    assert item.secret == "canary-7"
    assert b"canary" not in (workspace / "items-x.jsonl").read_bytes()


@pytest.mark.parametrize("text", [CSV + "acme,https://x.example/9,env:LATE\n", "org,config.url\n"])
def test_a_file_that_changed_is_not_believed(tmp_path, text):
    """Where the items file is no longer what was checked, nothing is taken from it."""
    path = tmp_path / "a.csv"
    path.write_text(CSV)
    checked, workspace = check_in(tmp_path, a_job(CreateWebhook(), path))
    path.write_text(text)
    with pytest.raises(RunDirectoryError, match="was edited"):
        read_again(checked, workspace)


@pytest.mark.interpreted
def test_there_is_a_bound(tmp_path, monkeypatch):
    """More secrets than memory shall hold are refused; the message names the field and no secret."""
    monkeypatch.setattr(item_secrets, "MOST_ITEMS", 1)
    path = tmp_path / "a.csv"
    path.write_text(CSV)
    with pytest.raises(ManifestError, match=r"config\.secret: expected env:NAME") as refused:
        check_in(tmp_path, a_job(CreateWebhook(), path))
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "org,config.url,config.secret,active\nacme,https://x.example,canary,perhaps\n"),
        ("a.csv", "org,config.url,config.secret\nacme,https://x.example,canary,canary\n"),
        ("a.csv", 'org,config.url,config.secret\nacme,https://x.example,"canary\n'),
        ("a.yaml", "- {org: acme, config: {url: 'https://x.example', secret: [canary]}}\n"),
        ("a.yaml", "- {org: acme, config: {url: 'https://x.example', secret: canary, secret: canary}}\n"),
        ("a.yaml", "- org: acme\n  config: {secret: canary\n"),
        ("a.json", '[{"org": "acme", "config": {"url": "https://x.example", "secret": {"canary": "canary"}}}]'),
        ("a.json", '[{"org": "acme", "config": {"secret": "canary}]'),
        ("a.jsonl", '{"org": "acme", "config": {"url": "https://x.example", "secret": ["canary"]}}'),
        ("a.jsonl", '{"org": "acme", "config": {"secret": "canary}'),
        ("a.csv", "org,config.url,config\nacme,https://x.example,canary\n"),
    ],
)
def test_no_flaw_shows_one(tmp_path, name, text):
    """What is wrong with an items file is said without the secrets that stand in it."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ManifestError) as refused:
        check_in(tmp_path, a_job(CreateWebhook(), path))
    assert "canary" not in str(refused.value)
