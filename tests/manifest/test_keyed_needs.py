"""`needs: [{JOB: {FIELD: ITS_FIELD}}]`: what is read of it, and what is refused."""

import pytest

from bulk.errors import ManifestError
from bulk.manifest.manifest import KeyedNeed
from bulk.manifest.reading import Overrides, read_manifest
from tests.manifest.making import HEAD

ONE = "    operation: readme.get\n    items: [{owner: o, repo: r}]\n"
A = f"jobs:\n  a:\n{ONE}"
APP = (
    "version: 1\nplatform:\n  base_url: 'http://127.0.0.1:9/api/v3'\n  credentials:\n"
    "    default: {app: {client_id: Iv1.abc, private_key: 'env:KEY', installation: auto}}\n"
)


def read(folder, text, head=HEAD, **given):
    """The manifest of that text."""
    (folder / "m.yaml").write_text(head + text)
    return read_manifest(folder / "m.yaml", Overrides(**given), {})


def test_whole_jobs_and_keys_are_read(tmp_path):
    """Both stand in one list; what is needed comes first, and only what is needed as a whole holds up a job."""
    text = f"jobs:\n  c:\n    needs: [a, {{b: {{owner: owner, repo: repo}}}}]\n{ONE}  b:\n{ONE}  a:\n{ONE}"
    jobs = read(tmp_path, text).jobs
    assert [job.name for job in jobs] == ["b", "a", "c"]
    assert (jobs[2].needs, jobs[2].barriers) == (("a", "b"), ("a",))
    assert jobs[2].by_key == (KeyedNeed("b", (("owner", "owner"), ("repo", "repo"))),)
    assert (jobs[2].is_free_unmatched, jobs[1].by_key) == (False, ())


def test_chosen_jobs_take_their_keys_along(tmp_path):
    """`--job` leaves out what is needed by key as well, with a note; `--with-needs` takes it along."""
    text = f"{A}  b:\n    needs: [{{a: {{owner: owner}}}}]\n    unmatched: free\n{ONE}"
    alone = read(tmp_path, text, jobs=("b",))
    assert [(job.name, job.needs, job.by_key, job.is_free_unmatched) for job in alone.jobs] == [("b", (), (), True)]
    assert alone.notes == ("job b: needs a, which --job leaves out; --with-needs takes it along",)
    assert [job.name for job in read(tmp_path, text, jobs=("b",), with_needs=True).jobs] == ["a", "b"]


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("needs: [{a: {rep: repo}}]", "b.needs: a.rep: items of readme.get: unknown field; did you mean repo or ref?"),
        ("needs: [{a: {owner: ownr}}]", "a.owner: items of readme.get: unknown field; did you mean owner?"),
        ("needs: [{nobody: {owner: owner}}]", "b.needs: 'nobody': unknown job"),
        ("needs: [{b: {owner: owner}}]", "b.needs: goes in a circle: b needs b"),
        ("needs: [{a: owner}]", "a key is {field of the own items: field of that job's items}"),
        ("needs: [{a: {}}]", "a key is {field of the own items: field of that job's items}"),
        ("needs: [{a: {owner: 1}}]", "fields are named by strings"),
        ("needs: [a, {a: {owner: owner}}]", "'a' is named twice: a job is needed as a whole, or by one key"),
        ("needs: [{}]", "expected a list of job names, or of jobs and keys"),
        ("needs: [3]", "expected a list of job names, or of jobs and keys"),
        ("needs: a", "expected a list of job names, or of jobs and keys"),
        ("unmatched: maybe", "b.unmatched: expected refuse or free, got 'maybe'"),
        (f"needs: [{', '.join(f'{{j{n}: {{owner: owner}}}}' for n in range(101))}]", "at most 100 jobs can be needed"),
    ],
)
def test_what_is_no_key_is_refused(tmp_path, job, words):
    """It ends with exit 2, the line of `needs`, and what was expected."""
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, f"{A}  b:\n    {job}\n{ONE}")
    assert caught.value.exit_code == 2
    assert f"m.yaml:8: jobs.{words}" in str(caught.value) if words.startswith("b.") else words in str(caught.value)


def test_made_items_have_no_keys(tmp_path):
    """Items that are made from results are not known when keys are checked: the way out is named."""
    made = "  b:\n    operation: readme.get\n    items: {from: a, map: {owner: item.owner, repo: item.repo}}\n"
    with pytest.raises(ManifestError, match=r"b makes its items from results.*: need the whole job, b"):
        read(tmp_path, f"{A}{made}  c:\n    needs: [{{b: {{owner: owner}}}}]\n{ONE}")


def test_a_secret_is_no_key(tmp_path):
    """Keys are shown in messages."""
    hook = "operation: webhook.create\n    items: [{org: o, config: {url: 'https://x.example'}}]\n"
    with pytest.raises(ManifestError, match=r"config of webhook.create is a secret, and a key is shown in messages"):
        read(tmp_path, f"{A}  b:\n    needs: [{{a: {{config: owner}}}}]\n    {hook}")


def test_an_app_without_an_installation_has_no_keys(tmp_path):
    """Whose budget pays, and what waits for what: one of the two can be read off an item."""
    text = f"{A}  b:\n    needs: [{{a: {{owner: owner}}}}]\n{ONE}"
    with pytest.raises(ManifestError, match=r"m\.yaml:11: jobs\.b\.needs: needs by key don't go with credential"):
        read(tmp_path, text, APP)
    assert read(tmp_path, text, APP.replace("auto", "7")).jobs[1].by_key
