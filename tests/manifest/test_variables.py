"""`vars:`, `--var` and `${…}`: what is filled in, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from bulk.errors import ManifestError, UsageError
from bulk.manifest.manifest import Manifest
from bulk.manifest.reading import Overrides, read_manifest

HEAD = "version: 1\nplatform: {base_url: 'https://api.example.com'}\n"
JOB = "jobs:\n  x:\n    operation: readme.get\n"


def read(folder: Path, text: str, *, head: str = HEAD, **given: Any) -> Manifest:
    """The manifest of a text."""
    (folder / "m.yaml").write_text(head + text)
    return read_manifest(folder / "m.yaml", Overrides(**given), {})


def item(manifest: Manifest, number: int = 0) -> dict[str, Any]:
    """An inline item of the first job."""
    items = manifest.jobs[0].items
    assert items is not None
    return dict(items[number])


def test_variables_are_filled_in_everywhere(tmp_path):
    """Names, paths, items, `with`, `save` and the platform take variables; `--var` beats `vars`, `$${` stays."""
    text = (
        "name: ${team}-audit\nvars: {team: platform, org: acme, host: code}\n"
        "limits: {pace: '${pace}'}\n" + JOB + "    with: {owner: '${org}', ref: 'a$${b}${team}'}\n"
        "    save: '{owner}/${team}.md'\n    items: [{repo: 'r-${org}-${org}'}]\n"
    )
    head = "version: 1\nplatform: {base_url: 'https://${host}.example.com/api/v3'}\n"
    manifest = read(tmp_path, text, head=head, variables={"org": "other", "pace": "burst"})
    assert (manifest.name, manifest.platform.base_url) == ("platform-audit", "https://code.example.com/api/v3")
    assert manifest.limits.pace == "burst"
    job = manifest.jobs[0]
    assert (dict(job.defaults), job.save) == ({"owner": "other", "ref": "a${b}platform"}, "{owner}/platform.md")
    assert item(manifest) == {"repo": "r-other-other"}
    assert manifest.variables == {"org": "other", "pace": "burst"}


def test_a_variable_alone_keeps_its_type(tmp_path):
    """A string that is one variable is a number where `vars` has one, also where `--var` gives it."""
    text = (
        "vars: {n: 5, on: false, share: 0.5}\n"
        + JOB
        + ("    priority: ${n}\n    items: [{owner: a, repo: '${n}x${on}', id: '${share}', ref: '${on}'}]\n")
    )
    manifest = read(tmp_path, text)
    assert (manifest.jobs[0].priority, item(manifest)) == (
        5,
        {"owner": "a", "repo": "5xfalse", "id": 0.5, "ref": False},
    )
    manifest = read(tmp_path, text, variables={"n": "-7", "on": "True", "share": "2"})
    assert (manifest.jobs[0].priority, item(manifest)) == (
        -7,
        {"owner": "a", "repo": "-7xtrue", "id": 2.0, "ref": True},
    )


def test_a_value_may_hold_what_looks_like_a_variable(tmp_path):
    """In `vars` as everywhere `$${` is a literal `${`; a value of `--var` stands as it is."""
    text = "vars: {note: 'a $${team} $${', host: 'x$${}'}\n" + JOB
    text += "    items: [{owner: '${note}', repo: 'r ${note} ${host}'}]\n"
    assert item(read(tmp_path, text)) == {"owner": "a ${team} ${", "repo": "r a ${team} ${ x${}"}
    given = item(read(tmp_path, text, variables={"note": "$${n}${note}"}))
    assert given == {"owner": "$${n}${note}", "repo": "r $${n}${note} x${}"}


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("    items: [{owner: '${tema}', repo: r}]\n", "m.yaml:7: jobs.x.items[0].owner: ", "did you mean team?"),
        ("    items: [{owner: '${zzz}', repo: r}]\n", "m.yaml:7: jobs.x.items[0].owner: ", "--var zzz=VALUE"),
        ("    items: [{owner: '${zzz}', repo: r}]\n", "m.yaml:7: ", "text that stands for itself is written $${zzz}"),
        ("    items: [{owner: '${a b}', repo: r}]\n", "m.yaml:7: jobs.x.items[0].owner: ", "expected ${NAME}"),
        (
            "    items:\n      - owner: acme\n        repo: '${team'\n",
            "m.yaml:9: jobs.x.items[0].repo: ",
            "written $${",
        ),
    ],
)
def test_unknown_variables_are_refused(tmp_path, text, place, words):
    """Each is named with its line, field and the way out, and only once."""
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, "vars: {team: platform}\n" + JOB + text)
    assert f"{tmp_path}/{place}" in str(caught.value)
    assert words in str(caught.value)
    assert len(caught.value.flaws) == 1


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("{team: [a]}", "m.yaml:3: vars.team: expected a string, a number, true or false, got a list"),
        ("{team: null}", "m.yaml:3: vars.team: expected a string, a number"),
        ("{team: '${other}'}", "m.yaml:3: vars.team: a variable can't be made from others"),
        ("{team: 'a $${b} ${'}", "m.yaml:3: vars.team: a variable can't be made from others"),
        (
            "{team: '$${${b}}'}",
            "vars.team: a variable can't be made from others: write its whole value out, and $${ for",
        ),
        ("{1team: a}", "m.yaml:3: vars.1team: expected a name of letters"),
        ("[team]", "m.yaml:3: vars: expected an object"),
        ("{token: ghp_0123456789abcdefghijABCDEFGHIJ012345}", "m.yaml:3: vars.token: looks like a secret"),
    ],
)
def test_variables_that_can_not_be(tmp_path, section, words):
    """What no variable can be is refused with its line, and a secret is not repeated."""
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, f"vars: {section}\n" + JOB + "    items: [{owner: a, repo: b}]\n")
    assert words in str(caught.value)
    assert "ghp_" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tema": "x"}, "--var tema: unknown variable; did you mean team?"),
        ({"idle": "x"}, "--var idle: it is declared in vars, but no string of the manifest holds ${idle}"),
        ({"n": "five"}, "--var n: expected a whole number, which it is in vars"),
        ({"on": "yes"}, "--var on: expected true or false, which it is in vars"),
        ({"team": "ghp_0123456789abcdefghijABCDEFGHIJ012345"}, "--var team: looks like a secret"),
    ],
)
def test_values_that_can_not_be_used(tmp_path, given, words):
    """A `--var` that nothing uses, is of the wrong kind or is a secret ends the command; no value is repeated."""
    text = (
        "vars: {team: a, idle: b, n: 5, on: true}\n"
        + JOB
        + ("    priority: ${n}\n    allow_empty: ${on}\n    items: [{owner: '${team}', repo: b}]\n")
    )
    assert item(read(tmp_path, text)) == {"owner": "a", "repo": "b"}
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text, variables=given)
    assert words in str(caught.value)
    assert "ghp_" not in str(caught.value)


def test_no_variable_is_a_secret(tmp_path):
    """A secret field refuses what a variable holds, and takes a place that one names."""
    text = "jobs:\n  x:\n    operation: webhook.create\n    items:\n      - org: acme\n        config: {url: 'https://h.example.com', secret: '%s'}\n"  # noqa: E501
    with pytest.raises(ManifestError, match=r"never the secret itself") as caught:
        read(tmp_path, text % "${key}", variables={"key": "hunter2"})
    assert "hunter2" not in str(caught.value)
    manifest = read(tmp_path, text % "env:${key}", variables={"key": "HOOK"})
    assert item(manifest)["config"]["secret"] == "env:HOOK"


def test_variables_are_part_of_what_a_manifest_means(tmp_path):
    """Another value is another manifest; where a value comes from, and an unused one, make no difference."""
    text = JOB + "    items: [{owner: '${o}', repo: b}]\n"
    one = read(tmp_path, text, variables={"o": "a"}).digest
    assert read(tmp_path, text, variables={"o": "b"}).digest != one
    assert read(tmp_path, "vars: {o: a, idle: c}\n" + text).digest == one
    assert read(tmp_path, JOB + "    items: [{owner: a, repo: b}]\n").digest == one
