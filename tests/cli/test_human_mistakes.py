"""Mistakes that people make, and what the command says: what is wrong, where, and the way out; exit 2, nothing sent.

Each row is one mistake in a manifest or its files, checked by the command itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bulk.cli import main

HEAD = "version: 1\nplatform: {base_url: 'https://code.example.com/api/v3'}\n"
READ = "    operation: readme.get\n"
ONE = "    items: [{owner: acme, repo: api}]\n"
FROM_CSV = READ + "    items: repos.csv\n"
PUT = "    operation: contents.put\n    items:\n      - owner: acme\n        repo: api\n        message: m\n"


def job(body: str, head: str = HEAD) -> str:
    """A manifest of one job, whose body begins on line 5."""
    return head + "jobs:\n  x:\n" + body


@dataclass(frozen=True)
class Mistake:
    """One mistake, and the three things that its message must hold.

    Attributes:
        where: what the line begins with: file, line and field. what: is wrong. way_out: of it.
        files: besides the manifest `m.yaml`, or all of them, by name.
        lines: of the message (count).
    """

    name: str
    manifest: str
    where: str
    what: str
    way_out: str
    files: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ("m.yaml",)
    lines: int = 1


MISTAKES = (
    Mistake("wrong column", job(FROM_CSV), "repos.csv:1: repository: ", "unknown field", "did you mean repo?",
            {"repos.csv": "owner,repository\nacme,api\n"}),
    Mistake("missing column", job(FROM_CSV), "repos.csv:1: repo: ", "is missing",
            "the header needs a column of this name",
            {"repos.csv": "owner\nacme\nacme\nacme\n"}),
    Mistake("semicolons", job(FROM_CSV), "repos.csv:1: 'owner;repo': ", "unknown field", "separated by commas",
            {"repos.csv": "owner;repo\nacme;api\n"}),
    Mistake("a tab", HEAD + "jobs:\n  x:\n\toperation: readme.get\n", "m.yaml:5: ", "there is a tab in column 1",
            "indented with spaces alone"),
    Mistake("plain text in content", job(PUT + "        path: A\n        content: '* @acme/owners'\n"),
            "m.yaml:11: content: ", "expected Base64", "plain text goes into a file that content_file names"),
    Mistake("path with a slash in front", job(PUT + "        path: /CODEOWNERS\n        content: QQ==\n"),
            "m.yaml:10: path: ", "begins with a slash", "leave that out"),
    Mistake("version in quotes", job(READ + ONE, HEAD.replace("1", '"1"', 1)), "m.yaml:1: version: ",
            "expected the number 1, got a string", "write it without quotes"),
    Mistake("a folder as items", job(READ + "    items: repos\n"), "m.yaml:6: jobs.x.items: 'repos': ", "is a folder",
            "name one file, such as 'repos/a.csv'", {"repos/a.csv": "owner,repo\nacme,api\n"}),
    Mistake("an event that is none",
            job("    operation: webhook.create\n    items:\n      - org: acme\n"
                "        config: {url: 'https://h.example.com'}\n        events: [pull_requests]\n"),
            "m.yaml:9: events[0]: ", "unknown event 'pull_requests'", "did you mean pull_request or"),
    Mistake("one id twice", job(FROM_CSV), "repos.csv:4: id: ", "given twice; first on line 2",
            "each item of a job needs an id of its own", {"repos.csv": "id,owner,repo\n1,a,b\n2,a,c\n1,a,d\n"}),
    Mistake("a header and nothing else", job(FROM_CSV), "repos.csv: ", "holds a header and no items",
            "write allow_empty: true into the job x", {"repos.csv": "owner,repo\n"}),
    Mistake("a need that is not there", job(READ + ONE + "    needs: [create-org]\n") + "  create-orgs:\n" + READ + ONE,
            "m.yaml:7: jobs.x.needs: 'create-org': ", "unknown job", "did you mean create-orgs?"),
    Mistake("a credential that is not there",
            job(READ + ONE + "    credential: admn\n", HEAD.replace("}", ", credentials: {admin: env:ADMIN}}")),
            "m.yaml:7: jobs.x.credential: ", "unknown credential", "did you mean admin?"),
    Mistake("a token in the manifest",
            job(READ + ONE, HEAD.replace("}", ", credentials: {default: ghp_0123456789}}")),
            "m.yaml:2: platform.credentials.default: ", "never the token itself", "env:NAME, file:PATH or command:"),
    Mistake("a base URL without https", job(READ + ONE, HEAD.replace("https://", "")), "m.yaml:2: platform.base_url: ",
            "got no https:// in front of the host", "expected https://HOST/api/v3"),
    Mistake("a file of nearly that name", job(READ + "    items: repo.csv\n"), "m.yaml:6: jobs.x.items: 'repo.csv': ",
            "there is no such file", "did you mean 'repos.csv'?", {"repos.csv": "owner,repo\nacme,api\n"}),
    Mistake("a manifest of nearly that name", job(READ + ONE), "m.yml: ", "there is no such file",
            "did you mean 'm.yaml'?", arguments=("m.yml",)),
    Mistake("owner and repo in one field", job(READ + "    items: [{owner: acme, repo: acme/api}]\n"),
            "m.yaml:6: repo: ",
            "got 'acme/api'", "the owner has a field of its own"),
    Mistake("an operation that is none", job("    operation: readmes.get\n" + ONE), "m.yaml:5: jobs.x.operation: ",
            "unknown operation 'readmes.get'", "did you mean readme.get"),
    Mistake("a field of items beside them", job(READ + "    owner: acme\n    items: [{repo: api, owner: b}]\n"),
            "m.yaml:6: jobs.x.owner: ", "is a field of the items", "into `with: {owner: …}`"),
    Mistake("a number that is a name", job(READ + "    items: [{owner: acme, repo: 5}]\n"), "m.yaml:6: repo: ",
            "expected a string, got a whole number", "put it in quotes"),
    Mistake("one item without a list", job(READ + "    items: {owner: acme, repo: api}\n"), "m.yaml:6: jobs.x.items: ",
            "got an object", "[{…}]"),
    Mistake("a spreadsheet", job(READ + "    items: a.xlsx\n"), "m.yaml:6: jobs.x.items: 'a.xlsx': ",
            "is a spreadsheet",
            "save it as CSV", {"a.xlsx": "PK"}),
    Mistake("a content file of nearly that name", job(PUT + "        path: A\n        content_file: CODEOWNER\n"),
            "m.yaml:11: content_file: ", "there is no file 'CODEOWNER'", "did you mean 'CODEOWNERS'?",
            {"CODEOWNERS": "x"}),
    Mistake("a variable that is none", job(READ + "    items: [{owner: '${tema}', repo: api}]\nvars: {team: a}\n"),
            "m.yaml:6: jobs.x.items[0].owner: ", "${tema}: unknown variable", "did you mean team?"),
    Mistake("a --var that is none", job(READ + ONE) + "vars: {team: a}\n", "--var tema: ", "unknown variable",
            "did you mean team?", arguments=("m.yaml", "--var", "tema=x")),
    Mistake("a --credential that is none",
            job(READ + ONE, HEAD.replace("}", ", credentials: {admin: env:ADMIN}}")),
            "--credential admn: ", "unknown credential", "did you mean admin?",
            arguments=("m.yaml", "--credential", "admn=env:ADMIN")),
    Mistake("a pool in a file of credentials, whose member is nowhere",
            job(READ + ONE, HEAD.replace("}", ", credentials: {admin: env:ADMIN}}")),
            "c.yaml:1: readers: ", "its member admn: unknown credential", "did you mean admin?",
            {"c.yaml": "readers: {pool: [admn]}\n"}, ("m.yaml", "--credentials", "c.yaml")),
    Mistake("an App in a file of credentials, in the place of a pool's member",
            job(READ + ONE, HEAD.replace("}", ", credentials: {a: env:A, readers: {pool: [a]}}}")),
            "c.yaml:1: a: ", "is a member of the pool readers", "expected one with a single token",
            {"c.yaml": "a: {app: {client_id: x, sign: 'command:x'}}\n"}, ("m.yaml", "--credentials", "c.yaml")),
    Mistake("a file of credentials that is not there", job(READ + ONE + "    credential: fleet\n"),
            "c.yam: ", "there is no such file", "", arguments=("m.yaml", "--credentials", "c.yam")),
    Mistake("an App without a number, where items are made from results",
            HEAD.replace("}", ", credentials: {default: {app: {client_id: x, sign: 'command:x'}}}}")
            + "jobs:\n  hooks: {operation: webhook.list, items: [{org: acme}]}\n"
            + "  one:\n    operation: webhook.get\n"
            + "    items: {from: hooks, each: result, map: {org: item.org, hook_id: result.id}}\n",
            "m.yaml:7: jobs.one.items: ", "are made from results",
            "give the App of credential 'default' an installation"),
    Mistake("a pool without members",
            job(READ + ONE + "    credential: readers\n", HEAD.replace("}", ", credentials: {readers: {pool: []}}}")),
            "m.yaml:2: platform.credentials.readers.pool: ", "expected at least one", ""),
    Mistake("a --job that is none", job(READ + ONE).replace("  x:", "  readmes:"), "--job readme: ", "unknown job",
            "did you mean readmes?", arguments=("m.yaml", "--job", "readme")),
    Mistake("a folder as authorities", job(READ + ONE, HEAD.replace("}", ", ca_bundle: certificates}")),
            "m.yaml:2: platform.ca_bundle: ", "is a folder", "name a file", {"certificates/corp.pem": "x"}),
    Mistake("a version that is not a date", job(READ + ONE, HEAD.replace("}", ", api_version: '2026-13-40'}")),
            "m.yaml:2: platform.api_version: ", "expected a date in quotes", 'such as "2026-03-10"'),
    Mistake("job instead of jobs", job(READ + ONE).replace("jobs:", "job:"), "m.yaml:3: job: ", "unknown field",
            "did you mean jobs?", lines=2),
)  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_message_says_what_where_and_the_way_out(
    mistake: Mistake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names place, mistake and way out; nothing else is said, and no token is repeated."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"m.yaml": mistake.manifest, **mistake.files}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert main(["check", *mistake.arguments]) == 2
    shown = capsys.readouterr()
    lines = shown.err.splitlines()
    assert (shown.out, len(lines)) == ("", mistake.lines), shown.err
    line = lines[-1]
    assert line.startswith(f"bulk: {mistake.where}"), line
    assert mistake.what in line
    assert mistake.way_out in line
    assert "ghp_" not in line


def test_there_are_enough() -> None:
    """The list has at least the fifteen mistakes that the issue asks for, and no name twice."""
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES) >= 15
