"""What `bulk init` and `bulk examples` write works with the commands that they name, and nothing is overwritten."""

from pathlib import Path

from tests.e2e.support.platform import Home, served


def test_init_to_run(tmp_path: Path) -> None:
    """From nothing to a run in three commands: init, a line in a CSV file, run."""
    home = Home(tmp_path)
    begun = home.run("init", "readme.get", "organization.create", "-o", "new/folder")
    assert begun.exit_code == 0
    names = ["manifest.yaml", "readme-get.csv", "organization-create.csv"]
    assert begun.out.splitlines() == [f"new/folder/{name}" for name in names]
    assert begun.err == "Fill in readme-get.csv, organization-create.csv, then: bulk check new/folder/manifest.yaml\n"
    empty = home.run("check", "new/folder/manifest.yaml")
    assert (empty.exit_code, empty.err.count("holds a header and no items")) == (2, 2)
    with (tmp_path / "new/folder/readme-get.csv").open("a") as file:
        file.write("acme-eng,hello-world\n")
    with served(tmp_path / "sandbox") as sandbox:
        home.variables["BULK_BASE_URL"] = sandbox.base_url
        ran = home.run("run", "new/folder/manifest.yaml", "--job", "readme-get", "--run-dir", "run")
        assert ran.exit_code == 0, ran.err
        assert len(home.results("run")) == 1


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    """A file that is there stays, and no other is written; an operation that is not there is named."""
    home = Home(tmp_path)
    home.write("readme-get.csv", "mine")
    refused = home.run("init", "readme.get")
    assert (refused.exit_code, refused.out) == (2, "")
    assert "readme-get.csv exists already; name another folder with -o, or move it away" in refused.err
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["readme-get.csv"]
    unknown = home.run("init", "readme.gte")
    assert (unknown.exit_code, "did you mean readme.get" in unknown.err) == (2, True)
    home.write("file", "")
    beneath = home.run("init", "readme.get", "-o", "file/below")
    assert (beneath.exit_code, "file/below" in beneath.err) == (2, True)


def test_examples_are_copied_once(tmp_path: Path) -> None:
    """Every manifest that is named is there and passes the check; a second time nothing is touched."""
    home = Home(tmp_path)
    home.variables |= {"BULK_BASE_URL": "https://api.example.com", "HOOK_SECRET": "rehearsal"}
    copied = home.run("examples")
    assert copied.exit_code == 0
    manifests = copied.out.splitlines()
    assert "bulk-examples/migration.yaml" in manifests
    assert "bulk sandbox --seed-data bulk-examples/sandbox/migration.yaml" in copied.err
    assert "bulk sandbox --seed-data bulk-examples/sandbox/fleet.yaml" in copied.err
    with served(tmp_path / "sandbox", "--seed-data", str(tmp_path / "bulk-examples/sandbox/fleet.yaml")) as sandbox:
        tried = home.run("run", "bulk-examples/readmes.yaml", "--limit", "3", "--base-url", sandbox.base_url)
        assert tried.exit_code == 0, tried.err
    for manifest in manifests:
        checked = home.run("check", manifest)
        assert checked.exit_code == 0, checked.err
    assert not list(tmp_path.rglob("*.py"))
    home.write("bulk-examples/migration.yaml", "mine")
    again = home.run("examples")
    assert (again.exit_code, again.out) == (2, "")
    assert "bulk-examples exists already, and nothing is overwritten: name a new folder" in again.err
    assert (tmp_path / "bulk-examples/migration.yaml").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert home.run("examples", "empty").exit_code == 0


def test_examples_that_can_not_be_written_leave_nothing(tmp_path: Path) -> None:
    """The message says why in words, and half of the examples are not there."""
    home = Home(tmp_path)
    command = "export PYTHONDONTWRITEBYTECODE=1; unset COVERAGE_PROCESS_CONFIG; ulimit -f 1; bulk examples"
    refused = home.run_typed(command, home.environment())
    assert (refused.exit_code, refused.out) == (2, "")
    assert refused.err == "bulk: bulk-examples: can't be written: File too large; name another folder\n"
    assert not list(tmp_path.iterdir())
