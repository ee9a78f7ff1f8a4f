"""A manifest file becomes a Manifest: defaults, precedence, order of jobs, identity."""

import json

import pytest

from bulk.errors import ManifestError, UsageError
from bulk.manifest.manifest import Limits
from bulk.manifest.reading import Overrides, read_manifest, read_platform
from bulk.quantities import Share
from tests.manifest.making import HEAD

JOB = "jobs: {x: {operation: readme.get, items: [{owner: acme, repo: api}]}}\n"
JOBS = "operation: readme.get, items: []"


def read(folder, text, overrides=None, **environ):
    path = folder / "m.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_manifest(path, overrides or Overrides(), environ)


def test_defaults(tmp_path):
    """A small manifest has every default of the interface."""
    manifest = read(tmp_path, HEAD + JOB)
    assert manifest.name == "m"
    assert manifest.limits == Limits()
    assert manifest.platform.vendor == "service"
    assert manifest.platform.credentials == {"default": "env:BULK_TOKEN"}
    assert manifest.platform.api_version is None
    assert not manifest.platform.trust_env
    (job,) = manifest.jobs
    assert (job.credential, job.needs, job.needs_policy, job.priority, job.save) == ("default", (), "all", 0, None)
    assert job.items == ({"owner": "acme", "repo": "api"},)


def test_everything_that_can_be_said(tmp_path):
    """Every field of the interface is read into its place."""
    (tmp_path / "ca.pem").write_text("x")
    (tmp_path / "a.csv").write_text("owner,repo\n")
    manifest = read(
        tmp_path,
        """
version: 1
name: spring-migration
platform:
  base_url: https://code.example.com/api/v3/
  vendor: github
  api_version: 2026-03-10
  ca_bundle: ca.pem
  trust_env: true
  credentials:
    default: env:TOKEN
    admin: file:admin-token
limits: {concurrency: 8, reserve: 10%, failures: 50, request_timeout: 30s, unreachable: 1m, max_duration: 2h, settle: 5,
  pace: burst}
jobs:
  first: {operation: organization.create, credential: admin, items: a.csv}
  second:
    operation: readme.get
    needs: [first]
    needs_policy: any-outcome
    priority: 10
    with: {owner: acme}
    items: "-"
    save: readmes/{owner}/{repo}.md
""",
    )
    assert manifest.name == "spring-migration"
    platform = manifest.platform
    assert platform.base_url == "https://code.example.com/api/v3"
    assert (platform.vendor, platform.api_version, platform.trust_env) == ("github", "2026-03-10", True)
    assert platform.ca_bundle == tmp_path / "ca.pem"
    assert platform.credentials == {"default": "env:TOKEN", "admin": f"file:{tmp_path}/admin-token"}
    assert manifest.limits == Limits(8, Share(fraction=0.1), Share(count=50), 30.0, 60.0, 7200.0, 5.0, "burst")
    first, second = manifest.jobs
    assert (first.name, first.items_path, first.credential, first.line) == ("first", tmp_path / "a.csv", "admin", 16)
    assert (second.needs, second.needs_policy, second.priority) == (("first",), "any-outcome", 10)
    assert (second.defaults, str(second.items_path), second.save) == (
        {"owner": "acme"},
        "-",
        "readmes/{owner}/{repo}.md",
    )


def test_a_mark_and_crlf_are_accepted(tmp_path):
    """A byte order mark and CRLF change nothing, not even the identity."""
    plain = read(tmp_path, HEAD + JOB)
    other = read(tmp_path, b"\xef\xbb\xbf" + (HEAD + JOB).replace("\n", "\r\n").encode())
    assert plain.digest == other.digest


def test_the_command_line_beats_the_environment_beats_the_manifest(tmp_path):
    """Precedence of base URL, vendor, token and limits."""
    text = (
        "version: 1\nplatform: {base_url: 'https://m/api/v3', vendor: service, credentials: {default: env:M}}\n" + JOB
    )
    environ = {"BULK_BASE_URL": "https://e/api/v3", "BULK_VENDOR": "github", "BULK_TOKEN": "t"}
    assert read(tmp_path, text).platform.base_url == "https://m/api/v3"
    assert read(tmp_path, text).platform.credentials == {"default": "env:M"}
    found = read(tmp_path, text, **environ).platform
    assert (found.base_url, found.vendor, found.credentials) == (
        "https://e/api/v3",
        "github",
        {"default": "env:BULK_TOKEN"},
    )
    given = Overrides(
        base_url="https://c/api/v3",
        vendor="service",
        credentials={"default": "env:C", "admin": "env:A"},
        concurrency="3",
        reserve="5%",
        failures="7",
        max_duration="90s",
        limit="2",
    )
    manifest = read(tmp_path, text, given, **environ)
    assert (manifest.platform.base_url, manifest.platform.vendor) == ("https://c/api/v3", "service")
    assert manifest.platform.credentials == {"default": "env:C", "admin": "env:A"}
    assert manifest.limits == Limits(
        concurrency=3, reserve=Share(fraction=0.05), failures=Share(count=7), max_duration_s=90
    )
    assert manifest.limit == 2


def test_the_platform_may_be_named_elsewhere(tmp_path):
    """Without `platform` the command line or the environment names it; with neither, that is a flaw."""
    text = "version: 1\n" + JOB
    assert read(tmp_path, text, BULK_BASE_URL="https://e/api/v3").platform.base_url == "https://e/api/v3"
    with pytest.raises(ManifestError, match=r"platform\.base_url: is missing.*--base-url.*BULK_BASE_URL"):
        read(tmp_path, text)
    assert read_platform(Overrides(base_url="https://c/api/v3"), {}).base_url == "https://c/api/v3"
    with pytest.raises(UsageError, match="no platform is named"):
        read_platform(Overrides(), {})


@pytest.mark.parametrize(
    ("overrides", "environ", "option"),
    [
        (Overrides(base_url="http://10.0.0.1/api/v3"), {}, "--base-url"),
        (Overrides(), {"BULK_BASE_URL": "x"}, "BULK_BASE_URL"),
        (Overrides(), {"BULK_VENDOR": "x"}, "BULK_VENDOR"),
        (Overrides(vendor="x"), {}, "--vendor"),
        (Overrides(concurrency="0"), {}, "--concurrency"),
        (Overrides(reserve="100%"), {}, "--reserve"),
        (Overrides(failures="x"), {}, "--failures"),
        (Overrides(max_duration="x"), {}, "--max-duration"),
        (Overrides(limit="0"), {}, "--limit"),
        (Overrides(credentials={"default": "hunter2"}), {}, "--credential default"),
    ],
)
def test_a_wrong_option_is_named(tmp_path, overrides, environ, option):
    """What the command line or the environment gives wrongly is named by its own name, and no token is repeated."""
    with pytest.raises(UsageError) as caught:
        read(tmp_path, HEAD + JOB, overrides, **environ)
    assert str(caught.value).startswith(f"{option}: ")
    assert "hunter2" not in str(caught.value)


def test_jobs_run_after_what_they_need(tmp_path):
    """Needs come first, otherwise the order is that of the file."""
    jobs = f"jobs:\n  a: {{{JOBS}, needs: [d]}}\n  b: {{{JOBS}}}\n  c: {{{JOBS}, needs: [b]}}\n  d: {{{JOBS}}}\n"
    manifest = read(tmp_path, HEAD + jobs)
    assert [(job.number, job.name) for job in manifest.jobs] == [(0, "b"), (1, "c"), (2, "d"), (3, "a")]


def test_the_identity_is_what_is_meant_without_limits(tmp_path):
    """Comments, layout and `limits` may change from one resume to the next; anything else makes another manifest."""
    base = read(tmp_path, HEAD + JOB).digest
    assert read(tmp_path, "# words\n" + HEAD + "limits: {concurrency: 3}\n" + JOB).digest == base
    assert read(tmp_path, HEAD + JOB.replace("api", "web")).digest != base
    assert read(tmp_path, HEAD.replace("127.0.0.1", "127.0.0.2") + JOB).digest != base


def test_at_most_fifty_flaws_are_listed(tmp_path):
    """Of many flaws 50 are listed, and the rest is counted."""
    fields = "".join(f"x{number:03}: 1\n" for number in range(1200))
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, HEAD + JOB + fields)
    assert len(caught.value.flaws) == 50
    assert caught.value.more == 1150
    assert str(caught.value).endswith("and 1,150 more")


def test_flaws_come_in_the_order_of_the_lines(tmp_path):
    """Whoever corrects them goes through the file once."""
    one = "operation: readme.get, items: [{owner: acme, repo: api}]"
    jobs = f"jobs:\n  a: {{{one}, needs: [zz]}}\n  b: {{{one}, itemz: 5}}\n"
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, f"{HEAD}{jobs}limits: {{pace: x}}\nname: '#'\nlimitz: 5\n")
    lines = [flaw.line for flaw in caught.value.flaws]
    assert (len(lines), lines) == (5, sorted(lines))


def test_messages_hold_no_control_characters(tmp_path):
    """Names from a file are shown escaped and cut, so that no terminal is fooled (failures.md row 66)."""
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, HEAD + JOB + f'"\\e[31mred{"x" * 200}": 1\n"a\\u202Eb": 2\n')
    text = str(caught.value)
    assert all(char.isprintable() or char == "\n" for char in text)
    assert max(map(len, text.splitlines())) < 250 + len(str(tmp_path))


def test_a_missing_manifest_is_one_line(tmp_path):
    """No file, a folder, a broken link: exit 2 and the name."""
    for path in (tmp_path / "gone.yaml", tmp_path):
        with pytest.raises(ManifestError) as caught:
            read_manifest(path, Overrides(), {})
        assert str(caught.value).startswith(f"{path}: ")


def test_insecure_http_can_be_insisted_on_in_the_manifest(tmp_path):
    """`allow_insecure_http: true` lets plain http leave this machine, also for --base-url."""
    text = "version: 1\nplatform: {base_url: 'http://code.example.com/api/v3', allow_insecure_http: true}\n" + JOB
    assert read(tmp_path, text).platform.base_url == "http://code.example.com/api/v3"
    given = Overrides(base_url="http://10.0.0.1/api/v3")
    assert read(tmp_path, text, given).platform.base_url == "http://10.0.0.1/api/v3"


def test_a_large_manifest_is_told_the_way_out(tmp_path):
    """YAML is slow to read: where items make a manifest large, a note says where they are read at once."""
    items = [{"owner": "acme", "repo": "api", "id": "x" * 1_000} for _ in range(1_000)]
    few = "  few: {operation: readme.get, items: [{owner: a, repo: b}]}\n"
    jobs = "jobs:\n  many: {operation: readme.get, items: %s}\n" + few
    path = tmp_path / "m.yaml"
    path.write_text(HEAD + jobs % json.dumps(items))
    (note,) = read_manifest(path, Overrides(), {}).notes
    assert note.startswith("job many: its 1,000 items make the manifest large")
    assert "JSON lines" in note
    path.write_text(HEAD + jobs % json.dumps(items[:900]))
    assert read_manifest(path, Overrides(), {}).notes == ()
