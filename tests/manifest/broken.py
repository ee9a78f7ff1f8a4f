"""Manifests that must be refused, as data: each with the file, line and field that the message must name.

`write` puts one into a folder and gives the manifest's path. Other tests run the real command on them: exit 2, and
nothing sent.
"""

import gzip
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

HEAD = "version: 1\nplatform: {base_url: 'http://127.0.0.1:9/api/v3'}\n"
SNAPSHOT = (
    '"version":0,"job":{"id":"1","correlator":"build"},"ref":"refs/heads/main","scanned":"2026-11-21T08:00:00Z",'
    '"detector":{"name":"d","version":"1","url":"https://example.com/d"}'
)
SHA = "0123456789abcdef0123456789abcdef01234567"
PUT = '"owner":"acme","repo":"api","path":"A","message":"m"'


@dataclass(frozen=True)
class Expected:
    """One flaw: the file's name, its line (0: none), the field (empty: none) and words of the message."""

    file: str
    line: int
    field: str
    words: str

    @property
    def place(self) -> str:
        """What the line of the message begins with, from the file's name on."""
        place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: "
        return place + (f"{self.field}: " if self.field else "")


@dataclass(frozen=True)
class Broken:
    """A manifest `m.yaml` with other files, and every flaw that must be named.

    `never` is text that must not be repeated.
    """

    name: str
    files: Mapping[str, bytes | str | Callable[[], bytes]]
    flaws: tuple[Expected, ...]
    never: str = ""
    prepare: Callable[[Path], None] = field(default=lambda folder: None)

    def write(self, folder: Path) -> Path:
        """Put the files into `folder`."""
        for name, content in self.files.items():
            data = content() if callable(content) else content
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.encode() if isinstance(data, str) else data)
        self.prepare(folder)
        return folder / "m.yaml"


def manifest(name: str, text: str | bytes, *flaws: tuple[int, str, str], never: str = "") -> Broken:
    """One whose flaws are all in the manifest itself."""
    return Broken(name, {"m.yaml": text}, tuple(Expected("m.yaml", *flaw) for flaw in flaws), never)


def job(name: str, body: str, *flaws: tuple[int, str, str], never: str = "") -> Broken:
    """One with a good head and one job `x`, whose body begins on line 5."""
    return manifest(name, HEAD + "jobs:\n  x:\n" + body, *flaws, never=never)


def items(
    name: str,
    file: str,
    data: bytes | str | Callable[[], bytes],
    *flaws: tuple[int, str, str],
    operation: str = "readme.get",
    never: str = "",
) -> Broken:
    """One whose flaws are all in its items file."""
    text = HEAD + f"jobs:\n  x:\n    operation: {operation}\n    items: {file}\n"
    return Broken(name, {"m.yaml": text, file: data}, tuple(Expected(file, *flaw) for flaw in flaws), never)


def snapshot(sha: str, more: str = "") -> str:
    """A line of items for snapshot.create; `more` begins with a comma."""
    return f'{{"owner":"acme","repo":"api","sha":"{sha}",{SNAPSHOT}{more}}}'


def _link_outside(folder: Path) -> None:
    outside = folder.parent / f"{folder.name}-outside.txt"
    outside.write_text("outside")
    (folder / "link.txt").symlink_to(outside)


def _fifo(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def _sparse(folder: Path) -> None:
    with (folder / "large.bin").open("wb") as file:
        file.truncate(100 * 1024 * 1024 + 1)


def _content_file(name: str, file: str, words: str, prepare: Callable[[Path], None] = lambda folder: None) -> Broken:
    text = HEAD + (
        "jobs:\n  x:\n    operation: contents.put\n    items:\n"
        f"      - owner: acme\n        repo: api\n        path: A\n        message: m\n        content_file: {file}\n"
    )
    return Broken(name, {"m.yaml": text}, (Expected("m.yaml", 11, "content_file", words),), prepare=prepare)


GOOD = '{"owner":"acme","repo":"api"}\n'
READ = "    operation: readme.get\n"
ONE = "    items: [{owner: acme, repo: api}]\n"

MANIFESTS = (
    # the manifest as a text
    manifest("empty", "", (1, "", "is empty")),
    manifest("live-plan", '{"bulk_plan": 1, "origin": {}}', (1, "", "is a live plan: `bulk approve`")),
    manifest(
        "gate-alone",
        HEAD + "limits: {gate: manual}\njobs:\n  x:\n" + READ + ONE,
        (3, "limits.gate", "it needs limits.waves"),
    ),
    manifest("not-yaml", "version: 1\njobs: [a, b\n", (3, "", "not YAML")),
    manifest(
        "tab", "version: 1\njobs:\n\tx: 1\n", (3, "", "there is a tab in column 1; YAML is indented with spaces alone")
    ),
    manifest("list", "- a\n", (1, "", "expected an object")),
    manifest("invalid-utf-8", b"version: 1\nname: caf\xe9\n", (2, "", "not UTF-8: the byte 0xE9")),
    manifest("nul", b"version: 1\nname: a\0b\n", (2, "", "a NUL character")),
    manifest("utf-16", "version: 1\n".encode("utf-16"), (1, "", "UTF-16")),
    manifest(
        "duplicate-key",
        HEAD + "jobs:\n  x:\n" + READ + ONE + "    items: a.jsonl\n",
        (7, "jobs.x.items", "given twice; first on line 6"),
    ),
    manifest(
        "alias-bomb",
        "version: 1\na: &a [x, x, x]\nb: [*a, *a, *a]\n",
        (2, "a", "anchors (&name) are refused"),
    ),
    manifest("alias", "version: 1\nname: *x\n", (2, "name", "aliases (*name) are refused")),
    manifest("tag", "version: 1\nname: !!python/name:os.system x\n", (2, "name", "tags (!name) are refused")),
    manifest("merge-key", HEAD + "jobs:\n  x:\n    <<: {a: 1}\n", (5, "jobs.x", "merge keys (<<) are refused")),
    manifest("second-document", HEAD + "---\nversion: 1\n", (3, "", "a second document")),
    manifest("old-yaml", "%YAML 1.1\n---\nversion: 1\n", (2, "", "directives are refused")),
    manifest("deep", "version: 1\njobs: " + "[" * 5000 + "]" * 5000, (2, "jobs", "nested more than 64 deep")),
    manifest("larger-than-16-mib", b"# " + b"x" * (16 * 1024 * 1024), (0, "", "larger than 16 MiB")),
    # its own fields
    manifest("no-version", HEAD[11:] + "jobs:\n  x:\n" + READ + ONE, (1, "version", "is missing")),
    manifest("version-2", "version: 2\n" + HEAD[11:] + "jobs:\n  x:\n" + READ + ONE, (1, "version", "expected 1")),
    manifest("no-jobs", HEAD, (1, "jobs", "is missing")),
    manifest("empty-jobs", HEAD + "jobs: {}\n", (3, "jobs", "expected at least one job")),
    manifest(
        "unknown-field",
        HEAD + "jobs:\n  x:\n" + READ + "    nedds: [y]\n" + ONE,
        (6, "jobs.x.nedds", "unknown field; did you mean needs?"),
    ),
    manifest(
        "wrong-types",
        HEAD + "limits:\n  concurrency: many\n  reserve: 100%\n  unreachable: 5 parsecs\n  pace: fast\njobs:\n  x:\n"
        "    priority: high\n    needs: y\n    save: [a]\n" + READ + ONE,
        (4, "limits.concurrency", "expected a whole number"),
        (5, "limits.reserve", "below 100%"),
        (6, "limits.unreachable", "expected a duration such as 90s"),
        (7, "limits.pace", "expected even or burst"),
        (10, "jobs.x.priority", "expected a whole number"),
        (11, "jobs.x.needs", "expected a list of job names"),
        (12, "jobs.x.save", "expected a string, got a list"),
    ),
    manifest(
        "inline-token",
        "version: 1\nplatform:\n  base_url: https://code.example.com/api/v3\n  credentials:\n    default: ghp_SECRET\n"
        "jobs:\n  x:\n" + READ + ONE,
        (5, "platform.credentials.default", "never the token itself"),
        never="ghp_SECRET",
    ),
    manifest(
        "base-url-with-user",
        "version: 1\nplatform: {base_url: 'https://me:hunter2@code.example.com/api/v3'}\njobs:\n  x:\n" + READ + ONE,
        (2, "platform.base_url", "user name or password"),
        never="hunter2",
    ),
    manifest(
        "base-url-with-odd-path",
        "version: 1\nplatform: {base_url: 'https://code.example.com/api/../v3'}\njobs:\n  x:\n" + READ + ONE,
        (2, "platform.base_url", "got a path that is not a plain one"),
    ),
    manifest(
        "plain-http",
        "version: 1\nplatform: {base_url: 'http://code.example.com/api/v3'}\njobs:\n  x:\n" + READ + ONE,
        (2, "platform.base_url", "plain http:"),
    ),
    manifest(
        "header-injection",
        "version: 1\nplatform:\n  base_url: http://127.0.0.1:9/api/v3\n"
        '  api_version: "2026-03-10\\r\\nX-Evil: 1"\n  vendor: "service\\r\\nX-Evil: 1"\njobs:\n  x:\n' + READ + ONE,
        (4, "platform.api_version", "expected a date"),
        (5, "platform.vendor", "expected service or github"),
    ),
    manifest(
        "missing-ca-bundle",
        HEAD.replace("}", ", ca_bundle: ca.pem}") + "jobs:\n  x:\n" + READ + ONE,
        (2, "platform.ca_bundle", "there is no such file"),
    ),
    # jobs
    job("unmatched-alone", READ + "    unmatched: free\n" + ONE, (6, "jobs.x.unmatched", "goes with a need by key")),
    job("command", READ + ONE + "audit: {notify: [{command: a}]}\n", (7, "audit.notify[0].command", "as [./tell.sh, ")),
    job("no-operation", ONE, (4, "jobs.x.operation", "is missing")),
    job(
        "unknown-operation",
        "    operation: readme.gte\n" + ONE,
        (5, "jobs.x.operation", "unknown operation 'readme.gte'; did you mean readme.get"),
    ),
    job(
        "unknown-operation-and-items",
        "    operation: readme.gte\n    items: gone.csv\n",
        (5, "jobs.x.operation", "unknown operation"),
        (6, "jobs.x.items", "there is no such file"),
    ),
    job("no-items", READ, (4, "jobs.x.items", "is missing")),
    job("items-number", READ + "    items: 5\n", (6, "jobs.x.items", "got a whole number")),
    job(
        "items-from", READ + "    items: {from: y, map: {owner: a, repo: b}}\n", (6, "jobs.x.items.from", "unknown job")
    ),
    job("no-items-in-the-list", READ + "    items: []\n", (6, "jobs.x.items", "allow_empty")),
    job("missing-file", READ + "    items: gone.jsonl\n", (6, "jobs.x.items", "there is no such file")),
    job("endless-file", READ + f"    items: {'x' * 300}.csv\n", (6, "jobs.x.items", "can't be opened: File name too")),
    job("unknown-format", READ + "    items: m.toml\n", (6, "jobs.x.items", "expected the name of a .jsonl")),
    Broken(
        "folder-as-items",
        {"m.yaml": HEAD + "jobs:\n  x:\n" + READ + "    items: a.jsonl\n", "a.jsonl/inner": ""},
        (Expected("m.yaml", 6, "jobs.x.items", "is a folder; expected a file"),),
    ),
    job("unknown-credential", READ + ONE + "    credential: admim\n", (7, "jobs.x.credential", "unknown credential")),
    job("needs-unknown", READ + ONE + "    needs: [y]\n", (7, "jobs.x.needs", "unknown job")),
    job("needs-itself", READ + ONE + "    needs: [x]\n", (7, "jobs.x.needs", "goes in a circle: x needs x")),
    manifest(
        "circular-needs",
        HEAD + "jobs:\n" + "".join(f"  {name}:\n{READ}{ONE}    needs: [{need}]\n" for name, need in ("ab", "bc", "ca")),
        (7, "jobs.a.needs", "goes in a circle: a needs b needs c needs a"),
    ),
    manifest("bad-job-name", HEAD + "jobs:\n  a/b:\n" + READ + ONE, (4, "jobs.'a/b'", "expected a job name")),
    job("save-unknown-field", READ + ONE + '    save: "{ownr}.md"\n', (7, "jobs.x.save", "did you mean owner?")),
    job("save-absolute", READ + ONE + '    save: "/tmp/{repo}.md"\n', (7, "jobs.x.save", "got an absolute one")),
    job("save-dots", READ + ONE + '    save: "../{repo}.md"\n', (7, "jobs.x.save", "segment . or ..")),
    job(
        "save-dots-from-item",
        "    operation: contents.get\n    save: '{owner}/{path}'\n    items:\n"
        "      - owner: acme\n        repo: api\n        path: ../../x\n",
        (10, "path", "leave its folder"),
    ),
    job(
        "saved-twice",
        READ + '    save: "{repo}.md"\n    items:\n      - {owner: a, repo: API}\n      - {owner: b, repo: api}\n',
        (9, "save", "same file as item 0"),
    ),
    job(
        "with-unknown-field",
        "    operation: contents.put\n    with:\n      brnch: main\n    items: [{owner: acme, repo: api, path: A}]\n",
        (7, "jobs.x.with.brnch", "did you mean branch?"),
    ),
    # inline items
    job(
        "nested-fields",
        "    operation: contents.put\n    items:\n      - owner: acme\n        repo: api\n        path: A\n"
        "        message: m\n        content: QQ==\n        committer:\n          name: Mona\n          emial: x\n",
        (14, "committer.emial", "unknown field; did you mean email?"),
        (12, "committer.email", "is missing"),
    ),
    job(
        "yaml-needs-quotes",
        READ + "    items:\n      - {owner: acme, repo: 5}\n",
        (7, "repo", "expected a string, got a whole number (put it in quotes)"),
    ),
    job("item-no-object", READ + "    items:\n      - acme/api\n", (7, "jobs.x.items[0]", "expected an object")),
    job(
        "traversal",
        "    operation: contents.get\n    items: [{owner: acme, repo: api, path: a/../../b}]\n",
        (6, "path", "leave its folder"),
    ),
    # items files
    items("unknown-item-field", "a.jsonl", GOOD + '{"owner":"a","repo":"b","reff":"c"}\n', (2, "reff", "mean ref?")),
    items("wrong-type", "a.jsonl", GOOD + '\n{"owner":5,"repo":"b"}\n', (3, "owner", "expected a string, got a whole")),
    items("missing-field", "a.jsonl", '{"owner":"a"}', (1, "repo", "is missing; expected a string")),
    items(
        "two-flaws-in-one-item",
        "a.jsonl",
        '{"owner":"a","media_type":"xml"}',
        (1, "repo", "is missing"),
        (1, "media_type", "expected one of"),
    ),
    items("json-syntax", "a.jsonl", GOOD + '{"owner" "a"}\n', (2, "", "expecting ':' delimiter (column 10)")),
    items("json-cut", "a.jsonl", GOOD + '{"owner":"a","re', (2, "", "unterminated string")),
    items("json-nan", "a.jsonl", '{"owner":NaN}\n', (1, "", "there is no number NaN")),
    items("json-repeated-key", "a.jsonl", '{"owner":"a","repo":"b","owner":"c"}\n', (1, "owner", "given twice")),
    items("json-surrogate", "a.jsonl", '{"owner":"a","repo":"\\ud800"}\n', (1, "", "lone surrogate")),
    items("json-deep", "a.jsonl", '{"owner":' + "[" * 100_000 + "\n", (1, "", "nested too deeply")),
    items("item-invalid-utf-8", "a.jsonl", b'{"owner":"\xff","repo":"b"}\n', (1, "", "not UTF-8: the byte 0xFF")),
    items("item-nul", "a.jsonl", b'{"owner":"a\0","repo":"b"}\n', (1, "", "a NUL character")),
    items(
        "line-of-50-mb",
        "a.jsonl",
        lambda: GOOD.encode() + b'{"owner":"' + b"a" * 50_000_000 + b'"}\n{"owner":5,"repo":"b"}\n',
        (2, "", "longer than 16 MiB"),
        (3, "owner", "expected a string"),
    ),
    items("items-utf-16", "a.jsonl", GOOD.encode("utf-16"), (1, "", "is UTF-16")),
    items("undeclared-gzip", "a.jsonl", gzip.compress(GOOD.encode()), (1, "", "is compressed")),
    items("damaged-gzip", "a.jsonl.gz", gzip.compress(GOOD.encode())[:-6], (0, "", "ends too early")),
    items("no-gzip", "a.jsonl.gz", GOOD, (0, "", "damaged, or is not gzip")),
    items("no-zstd", "a.jsonl.zst", GOOD, (0, "", "damaged, or is not zstd")),
    items("json-no-list", "a.json", GOOD, (1, "", "goes into a .jsonl file")),
    items("json-not-closed", "a.json", "[" + GOOD, (2, "", "the list is not closed")),
    items("json-comma", "a.json", "[" + GOOD + ",\n\n]", (4, "", "one comma too many")),
    items(
        "json-lines-of-fields",
        "a.json",
        '[\n  {\n    "owner": "acme",\n    "repo": "api"\n  },\n  {\n    "owner": "acme",\n    "repo": 5\n  }\n]',
        (8, "repo", "expected a string, got a whole number"),
    ),
    items("csv-quotes", "a.csv", 'owner,repo\nacme,"api"x\n', (2, "", "goes on after its closing quote")),
    items("csv-stray-quote", "a.csv", 'owner,repo\nacme,a"p"i\n', (2, "", "does not begin with one")),
    items("csv-open-quote", "a.csv", 'owner,repo\nacme,api\nacme,"api\nx,y\n', (3, "", "is not closed")),
    items("csv-too-many-cells", "a.csv", "owner,repo\nacme,api,x\n", (2, "", "3 cells, but the header has 2")),
    items("csv-unknown-column", "a.csv", "owner,rpeo\nacme,api\n", (1, "rpeo", "did you mean repo?")),
    items("csv-second-column", "a.csv", "owner,repo,owner\n", (1, "owner", "a second column of this name")),
    items("csv-tabs", "a.csv", "owner\trepo\nacme\tapi\n", (1, "'owner\\trepo'", "not by tabs")),
    items("csv-semicolons", "a.csv", "owner;repo\nacme;api\n", (1, "'owner;repo'", "not by semicolons")),
    items(
        "csv-cell-types",
        "a.csv",
        "owner,repo,version,metadata.a,manifests,job,sha,ref,detector,scanned\nacme,api,five,x,{no}\n",
        (2, "version", "expected a whole number, got 'five'"),
        (2, "manifests", "expected JSON"),
        operation="snapshot.create",
    ),
    items("csv-nul", "a.csv", b"owner,repo\nac\0me,api\n", (2, "", "a NUL character")),
    items("csv-invalid-utf-8", "a.csv", b"owner,repo\nacme,caf\xe9\n", (2, "", "not UTF-8")),
    items("yaml-items-object", "a.yaml", "owner: acme\n", (1, "", "expected a list of items, got an object")),
    items("yaml-items-alias", "a.yaml", "- &a {owner: acme, repo: api}\n- *a\n", (1, "", "anchors (&name)")),
    items("yaml-items-field", "a.yaml", "- owner: acme\n  repo:\n    - 5\n", (2, "repo", "got a list")),
    items("yaml-items-twice", "a.yaml", "- owner: acme\n  owner: b\n  repo: c\n", (2, "owner", "given twice")),
    # what the platform would refuse
    items(
        "nine-metadata-keys",
        "a.jsonl",
        snapshot(SHA, ',"metadata":{' + ",".join(f'"k{number}":1' for number in range(9)) + "}"),
        (1, "metadata", "expected an object of at most 8 fields"),
        operation="snapshot.create",
    ),
    items(
        "sha-of-41-characters",
        "a.jsonl",
        snapshot(SHA + "8"),
        (1, "sha", "expected a string of at most 40 characters"),
        operation="snapshot.create",
    ),
    items(
        "bad-package-url",
        "a.jsonl",
        snapshot(SHA, ',"manifests":{"m":{"name":"m","resolved":{"a":{"package_url":"x"}}}}'),
        (1, "manifests.m.resolved.a.package_url", "package URL"),
        operation="snapshot.create",
    ),
    items(
        "bad-base64",
        "a.jsonl",
        "{" + PUT + ',"content":"not base64!"}',
        (1, "content", "Base64"),
        operation="contents.put",
    ),
    items(
        "committer-without-email",
        "a.jsonl",
        "{" + PUT + ',"content":"QQ==","committer":{"name":"Mona"}}',
        (1, "committer.email", "is missing"),
        operation="contents.put",
    ),
    # files that items name
    _content_file("content-file-missing", "files/gone", "there is no file 'files/gone'"),
    _content_file("content-file-outside", "../x", "file"),
    _content_file("content-file-absolute", "/etc/hostname", "file"),
    _content_file("content-file-link", "link.txt", "outside the manifest's folder", _link_outside),
    _content_file("content-file-fifo", "pipe", "is not a regular file", _fifo),
    _content_file("content-file-folder", ".", "is not a regular file"),
    _content_file("content-file-large", "large.bin", "the most is 104,857,600", _sparse),
    Broken(
        "manifest-file-no-json",
        {
            "m.yaml": HEAD + "jobs:\n  x:\n    operation: snapshot.create\n    items: a.jsonl\n",
            "a.jsonl": snapshot(SHA, ',"manifest_file":"f.json"'),
            "f.json": "[]",
        },
        (Expected("a.jsonl", 1, "manifest_file", "expected a JSON object"),),
    ),
)
