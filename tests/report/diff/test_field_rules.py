"""What of a result is compared, and how entries of its lists are told apart: as its operation says."""

from msgspec import UNSET

from bulk.report.diff.field_changes import differences, rules_of


def test_entries_are_told_apart_by_the_key_that_the_operation_names():
    """One file more in a listing is one field more, wherever it stands."""
    rules = rules_of("contents.get")
    old = [{"name": name, "sha": name} for name in ("a", "c")]
    found = list(differences(old, [old[0], {"name": "b", "sha": "b"}, old[1]], "result", rules))
    assert [(each.field, each.old, each.new["name"]) for each in found] == [("result[name=b]", UNSET, "b")]


def test_a_repeated_write_of_the_same_file_is_no_change():
    """The commit is there only the first time, and is not part of the file; where events go is part of a webhook."""
    put = rules_of("contents.put")
    written = {"path": "a", "sha": "b", "commit": {"sha": "c"}}
    assert put.steady(written) == {"path": "a", "sha": "b"}
    hook = {"id": 1, "url": "https://code.example.com/1", "config": {"url": "https://x.example.com"}}
    assert rules_of("webhook.list").steady([hook]) == [{"id": 1, "config": hook["config"]}]
