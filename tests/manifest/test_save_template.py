"""Names of saved files: whatever an item holds, the file stays below `saved/` and can be made everywhere."""

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.errors import ManifestError
from bulk.manifest.save_template import SaveFlaw, Template, folded, saved_path
from bulk_jobs.shared.team_requests import AssignmentItem
from bulk_jobs.team_organizations import GetTeamOrganization
from tests.manifest.making import ReadThing, SecretThing, ThingItem, a_job, check_in

READ = ReadThing()
ANY = st.text(st.characters(exclude_categories=[]), min_size=1, max_size=12) | st.sampled_from(
    [
        "..",
        ".",
        "CON",
        "con.txt",
        "a.",
        "a ",
        "../../etc/passwd",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "a:b",
        "x" * 300,
        "é" * 200,
        "nul",
    ]
)


@given(ANY, ANY)
def test_no_item_leaves_the_folder(place, path):
    """Every name is relative, without dots, at most 255 bytes a segment, and a file system takes it
    (failures.md row 67)."""
    for text in ("{place}/{path}", "{place}.md", "x/{path}.{place}"):
        try:
            found = saved_path(a_job(READ, [], save=text), ThingItem(place=place, path=path))
        except SaveFlaw:
            continue
        parts = PurePosixPath(found).parts
        assert not found.startswith("/")
        assert ".." not in parts
        assert "/".join(parts) == found
        for part in found.split("/"):
            assert 0 < len(part.encode()) <= 255
            assert not set(part) & set('<>:"|?*\\\0\n')
            assert part[-1] not in ". "
            assert part.split(".")[0].lower() not in ("con", "nul")


@given(ANY, ANY)
def test_different_names_stay_different(one, other):
    """Encoding is one to one: two fields that differ give files that differ."""
    template = Template("{place}", READ)
    try:
        names = [template.fill(ThingItem(place=text)) for text in (one, other)]
    except SaveFlaw:
        return
    assert (names[0] == names[1]) == (one == other)


@pytest.mark.parametrize(
    ("text", "item", "path"),
    [
        ("{place}/{path}", {"place": "acme", "path": "docs/a.md"}, "acme/docs/a.md"),
        ("{place}", {"place": "a/b"}, "a%2Fb"),
        ("{place}", {"place": "ent:platform"}, "ent%3Aplatform"),
        ("{place}", {"place": "50%"}, "50%25"),
        ("{place}", {"place": "CON"}, "%43ON"),
        ("{place}.md", {"place": "lpt1"}, "%6Cpt1.md"),
        ("{place}", {"place": "a."}, "a%2E"),
        ("{place} /x", {"place": "a"}, "a%20/x"),
        ("{place}-{number}", {"place": "a", "number": 7}, "a-7"),
        ("{is_new}", {"place": "a", "is_new": True}, "true"),
        ("{person.name}", {"place": "a", "person": {"name": "Mona", "email": "x"}}, "Mona"),
        ("{extra.key}", {"place": "a", "extra": {"key": "v"}}, "v"),
        ("{{{place}}}", {"place": "a"}, "{a}"),
        ("{id}", {"place": "a", "id": "me"}, "me"),
    ],
)
def test_templates_are_filled(text, item, path):
    """Slashes are kept in paths alone, everything awkward is percent-encoded, the same in every process."""
    import msgspec

    assert Template(text, READ).fill(msgspec.convert(item, ThingItem)) == path


def test_long_segments_end_in_a_hash():
    """A segment above 255 bytes is cut between characters and stays different from others."""
    template = Template("{place}.md", READ)
    one, other = (template.fill(ThingItem(place="é" * 200 + end)) for end in "ab")
    assert len(one.encode()) <= 255
    assert one != other
    assert one[:100] == other[:100]


@pytest.mark.parametrize(
    "text",
    ["", " ", "/x/{place}", "../{place}", "a/../{place}", "{place}/", "a//{place}", "{}", "{place", "place}", "{plaec}",
     "a:{place}", "a\\{place}", "a\0{place}", "./{place}", "{place}\n"],
)  # fmt: skip
def test_bad_templates_are_refused(text):
    """What would leave the folder, name an unknown field or no file is refused before any item is read."""
    with pytest.raises(SaveFlaw):
        Template(text, READ)


def test_a_secret_names_no_file():
    """A template can't use a secret field."""
    with pytest.raises(SaveFlaw, match="is a secret"):
        Template("{secret}", SecretThing())


@pytest.mark.parametrize("item", [{"place": "a"}, {"place": "a", "path": ""}, {"place": "a", "path": "/x"}])
def test_items_without_a_name_are_flaws(tmp_path, item):
    """An item that lacks what `save` needs is refused by the check, with its field."""
    with pytest.raises(ManifestError) as caught:
        check_in(tmp_path, a_job(READ, [item], save="{path}"))
    assert caught.value.flaws[0].field == "path"


def collisions(folder, *jobs):
    try:
        check_in(folder, *jobs)
    except ManifestError as error:
        return [(flaw.field, flaw.message.split(" (")[0].split("as ", 1)[1]) for flaw in error.flaws]
    return []


def test_two_items_never_save_to_the_same_file(tmp_path):
    """The same name after folding case and accents is refused, also across jobs and sources."""
    (tmp_path / "b.jsonl").write_text('{"place":"x"}\n{"place":"STRASSE"}\n{"place":"cafe\\u0301"}\n')
    first = a_job(READ, [{"place": "straße"}, {"place": "CAFÉ"}], save="{place}")
    second = a_job(READ, Path(tmp_path / "b.jsonl"), save="{place}", number=1, name="y")
    assert collisions(tmp_path, first, second) == [("save", "item 0 of job x"), ("save", "item 1 of job x")]


def test_a_file_never_stands_where_a_folder_must(tmp_path):
    """An item's file that another item needs as a folder is refused, in either order."""
    items = [{"place": "a", "path": path} for path in ("docs", "docs/guide.md", "x/y/z", "X/y", "other")]
    assert collisions(tmp_path, a_job(READ, items, save="{path}")) == [("save", "item 0"), ("save", "item 2")]


def test_folding_is_what_file_systems_do():
    """Case and the form of accents don't make another file."""
    assert folded("Straße/É") == folded("STRASSE/e\u0301")
    assert folded("a/B") == "a/b"


def test_names_can_really_be_made(tmp_path):
    """A file system of this machine takes the awkward ones."""
    template = Template("{place}", READ)
    for place in ("CON", "a/b", "x" * 400, "é" * 300, "a\nb", "-rf", "~"):
        (tmp_path / template.fill(ThingItem(place=place))).write_text("x")
    assert len(list(tmp_path.iterdir())) == 7


def test_fields_are_named_as_users_name_them():
    """A field whose name is not a Python name, such as `enterprise-team`, names files like any other."""
    get = GetTeamOrganization()
    item = AssignmentItem(enterprise="acme", enterprise_team="ent:platform", org="acme-eng")
    job = a_job(get, [], save="{enterprise}/{enterprise-team}/{org}.json")
    assert saved_path(job, item) == "acme/ent%3Aplatform/acme-eng.json"
    with pytest.raises(SaveFlaw, match="enterprise-team"):
        Template("{enterprise_team}", get)
