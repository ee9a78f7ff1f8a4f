"""The tutorial and the how-to pages: every command can be read, every manifest passes the check, every service starts
what exists, and the tutorial is followed to its end.
"""

import os
import re
import shlex
import signal
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.docs.shown import DOCS, ROOT, Block, blocks, bulk_arguments, refused, shell_lines
from tests.e2e.support.platform import BULK, Home, has_ended, served, wait_for

HOW_TO = sorted((DOCS / "how-to").glob("*.md"))
TUTORIAL = DOCS / "tutorial" / "first-run.md"
PAGES = [TUTORIAL, *HOW_TO, DOCS / "reference" / "library.md", ROOT / "README.md"]
EACH = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
ASKED = {"migration", "snapshots", "audit", "notebooks", "private-ca", "proxy", "cloud-edition"} | {
    "steering",
    "github-actions",
    "systemd",
    "kubernetes",
    "store",
    "monitoring",
    "web-page",
    "several-machines",
    "app",
    "vault",
    "pools",
}


def test_every_page_that_was_promised_is_there() -> None:
    """There is a page for each thing that people want to get done, and it shows something."""
    assert {page.stem for page in HOW_TO} == ASKED
    assert all(blocks(page) for page in HOW_TO)


@EACH
def test_every_command_can_be_read(page: Path) -> None:
    """Each `bulk …` in a block for the shell has a command and options that exist."""
    wrong = {
        line: why for line in shell_lines(page) for arguments in bulk_arguments(line) if (why := refused(arguments))
    }
    assert wrong == {}


def test_a_command_that_cannot_be_read_is_found() -> None:
    """An option, a command or a value that does not exist is noticed, behind variables and another program too."""
    assert "No such option" in refused(["run", "a.yaml", "--frobnicate"])
    assert "no command" in refused(["rnu"])
    assert "loud" in refused(["run", "a.yaml", "--progress", "loud"])
    assert list(bulk_arguments("A=1 /opt/bin/bulk status runs/x >> file")) == [["status", "runs/x"]]
    assert list(bulk_arguments("kubectl exec job/x -- bulk status runs/x")) == [["status", "runs/x"]]
    assert list(bulk_arguments("docker build --tag bulk:0.1.0 .")) == []


def written(page: Path, folder: Path) -> list[Path]:
    """The files of a page, as a reader would write them: of several with one name the first; its manifests."""
    made: list[Path] = []
    for block in blocks(page):
        path = folder / block.title
        if block.title and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
            made.append(path)
    return [path for path in made if path.suffix in (".yaml", ".yml") and "operation:" in path.read_text()]


WITH_MANIFEST = [page for page in PAGES if any(block.title and "operation:" in block.text for block in blocks(page))]


@pytest.mark.parametrize("page", WITH_MANIFEST, ids=lambda page: page.stem)
def test_every_manifest_passes_the_check(page: Path, tmp_path: Path) -> None:
    """The manifests of a page, with the files that it shows, are found usable by `bulk check`."""
    home = Home(tmp_path, variables={"BULK_BASE_URL": "https://code.example.com/api/v3"})
    home.write("corp-ca.pem", "")
    manifests = written(page, tmp_path)
    assert manifests
    for manifest in manifests:
        checked = home.run("check", str(manifest.relative_to(tmp_path)))
        assert checked.exit_code == 0, checked.err


def documents(page: str, title: str) -> list[Any]:
    """The YAML documents of a file that a page shows."""
    (block,) = (block for block in blocks(DOCS / "how-to" / page) if block.title == title)
    return list(YAML(typ="safe").load_all(block.text))


def test_the_workflow_runs_what_exists() -> None:
    """The steps of the workflow are commands that can be read, and its run comes before its report."""
    (workflow,) = documents("github-actions.md", ".github/workflows/bulk.yml")
    lines = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    given = [arguments for line in lines for arguments in bulk_arguments(line)]
    assert [arguments[0] for arguments in given] == ["check", "run", "report"]
    assert {refused(arguments) for arguments in given} == {""}
    assert "secrets.BULK_TOKEN" in str(workflow["jobs"]["run"]["steps"])


def test_the_kubernetes_job_runs_what_exists() -> None:
    """The arguments of the container can be read; it runs as the user of the image, and its volumes are there."""
    claim, job = documents("kubernetes.md", "job.yaml")
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert refused([str(argument) for argument in container["args"]]) == ""
    assert pod["securityContext"]["runAsUser"] == int(re.findall(r"^USER (\d+)$", dockerfile(), re.MULTILINE)[-1])
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted.keys() == {volume["name"] for volume in pod["volumes"]}
    assert mounted["runs"] == "/srv/bulk/runs"
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    failing = [
        rule["onExitCodes"]["values"] for rule in job["spec"]["podFailurePolicy"]["rules"] if "onExitCodes" in rule
    ]
    assert not {code for codes in failing for code in codes} & {0, 3, 130, 143}, "these go on"


def units() -> Iterator[Block]:
    """The units and scripts of the page on systemd."""
    yield from (block for block in blocks(DOCS / "how-to" / "systemd.md") if block.language in ("ini", "bash"))


def test_the_units_start_what_exists() -> None:
    """Each command of a unit or script can be read; exit codes that need a person do not restart the service."""
    text = "\n".join(block.text for block in units())
    lines = [*re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE), *re.findall(r"^(exec .*)$", text, re.MULTILINE)]
    given = [arguments for line in lines for arguments in bulk_arguments(line)]
    assert len(given) == 2
    assert {refused(arguments) for arguments in given} == {""}
    assert "RestartPreventExitStatus=2 4 5" in text


def dockerfile() -> str:
    """The recipe of the image."""
    return (ROOT / "Dockerfile").read_text()


def test_the_image_has_what_every_command_needs() -> None:
    """It installs all extras of the package but those of developers: whatever a manifest of the how-to pages runs."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
    (installed,) = re.findall(r"'\.\[([a-z,]+)\]'", dockerfile())
    assert {*installed.split(","), "tables"} == extras - {"dev", "docs", "browser"}, "audit has what tables has"


def test_the_image_runs_as_a_user() -> None:
    """The image has a user without rights, names no registry's host, and copies what the build context holds."""
    text = dockerfile()
    assert re.findall(r"^USER (\S+)$", text, re.MULTILINE)[-1] not in ("0", "root")
    assert text.index("\nUSER ") > text.rindex("\nRUN ")
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert bases
    assert not [base for base in bases if "." in base.partition(":")[0] or "/" in base]
    copied = {name for line in re.findall(r"^COPY (?!--)(.+)$", text, re.MULTILINE) for name in line.split()[:-1]}
    admitted = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied == admitted
    assert {name for name in copied if not (ROOT / name).exists()} == set()
    assert re.search(r'^ENTRYPOINT \["bulk"\]$', text, re.MULTILINE)


def test_the_tutorial_works(tmp_path: Path) -> None:
    """Somebody who types what the tutorial shows, in its order, sees what it says; the install alone is left out."""
    home = Home(tmp_path)
    environ = {**home.environment(), "PATH": f"{_program(tmp_path)}:{os.environ['PATH']}"}
    environ.pop("BULK_TOKEN")
    codes: list[tuple[str, int]] = []
    server = None
    text = TUTORIAL.read_text().partition("## Start a platform")[2]
    try:
        for language, title, body in re.findall(
            r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', text, re.MULTILINE | re.DOTALL
        ):
            if title:
                home.write(title, body)
            for line in re.findall(r"^\$ (.*)$", body, re.MULTILINE) if language == "console" else ():
                line = line.replace("8750", str(server.port)) if server is not None else line
                if line.startswith("bulk sandbox"):
                    server = _Server(line, tmp_path, environ)
                elif line.startswith("export"):
                    environ |= dict(word.split("=", 1) for word in shlex.split(line)[1:])
                else:
                    codes.append((line, home.run_typed(line, environ).exit_code))
    finally:
        if server is not None:
            server.stop()
    failing = {line: code for line, code in codes if code}
    assert failing == {
        "bulk run first.yaml --run-dir runs/second": 1,
        "bulk retry runs/second": 1,
        "bulk run first.yaml --run-dir runs/third --max-duration 0.01s": 3,
        "bulk resume runs/third": 1,
    }
    assert len(codes) >= 14
    assert (tmp_path / "mine" / "contents-put.csv").is_file()
    assert len(list((tmp_path / "runs/first/saved").rglob("*.md"))) == 3
    outcomes = [(line["job"], line["outcome"]) for line in home.results("runs/second")[:5]]
    assert outcomes.count(("owners", "unchanged")) == 3


def test_the_page_on_steering_works(tmp_path: Path) -> None:
    """Each of its commands does to a run that goes on what the page says, in its order; both jobs end well."""
    home = Home(tmp_path)
    page = DOCS / "how-to" / "steering.md"
    written(page, tmp_path)
    home.write("repos.csv", "owner,repo\n" + "".join(f"acme-fleet,repo-{n:05d}\n" for n in range(60)))
    seed = {"repositories": {"organization": "acme-fleet", "count": 60, "readme_bytes": 100}}
    given = [arguments for line in shell_lines(page) for arguments in bulk_arguments(line)]
    (_, begin, *others) = given  # the first one is a sandbox, whose place another one takes
    with served(tmp_path / "sandbox", "--latency", "300", "--rate-limit", "off", seed=seed) as sandbox:
        home.variables["BULK_BASE_URL"] = sandbox.base_url
        with home.running(*begin, "--concurrency", "2") as process:
            wait_for(lambda: len(sandbox.requests()) >= 6, process)
            stopped = [arguments[0] for arguments in others].index("stop") + 1
            for arguments in others[:stopped]:
                if arguments[0] == "watch":
                    with home.running(*arguments) as watching:
                        assert watching.stderr is not None
                        assert watching.stderr.readline(), "it shows where the run stands"
                        watching.send_signal(signal.SIGINT)
                        watching.communicate(timeout=60)
                        assert watching.returncode == 0
                else:
                    done = home.run(*arguments)
                    assert done.exit_code == 0, (arguments, done.err)
            process.communicate(timeout=60)
            assert process.returncode == 3
        for arguments in others[stopped:]:
            done = home.run(*arguments)
            assert done.exit_code == 0, (arguments, done.err)
    assert {line["outcome"] for line in home.results("runs/steered")} == {"succeeded"}
    assert len(home.results("runs/steered")) == 120
    verbs = [action["verb"] for action in home.report("runs/steered")["actions"]]
    assert verbs == ["pause", "resume", "set", "set", "stop"]


def _program(folder: Path) -> Path:
    """A folder with the program `bulk` of this working copy."""
    path = folder / "bin" / "bulk"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {" ".join(BULK)} "$@"\n')
    path.chmod(0o755)
    return path.parent


class _Server:
    """The sandbox of the tutorial, at a free port instead of the one that it names."""

    def __init__(self, line: str, folder: Path, environ: dict[str, str]) -> None:
        command = line.replace("--port 8750", "--port 0")
        self.process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=folder,
            env=environ,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # the tokens of the sandbox, which no output of a test may hold
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().split(":")[2].partition("/")[0])

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        assert has_ended(self.process, 60)
        assert self.process.stdout is not None
        self.process.stdout.close()
