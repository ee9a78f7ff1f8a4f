"""Runs the browser tests: `python -m tests.browser`, as `make test-browser` does; `python -m tests.browser -n 0` in one
process.

The browser is `$BULK_BROWSER`, or else `chromium` or `google-chrome`, or else the one inside npm's package
@sparticuz/chromium, which is put into the environment. Where there is none, or no Playwright to drive it, the last line
says so; in continuous integration (`CI` is set) that is a failure.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGE = "@sparticuz/chromium@^147"
WHERE = Path(sys.prefix, "browser")
"""Where npm's browser is put."""

TOGETHER = ("-n", "2", "--dist", "loadfile")
"""Two browsers side by side: each waits for its pages most of the time."""

NPM_S, TESTS_S = 180, 600
"""How long an installation and all tests may take (seconds)."""

_UNPACK = "import('@sparticuz/chromium').then(async found => console.log(await found.default.executablePath()))"


def found_browser() -> str | None:
    """The browser to test with; None where there is none."""
    wished = os.environ.get("BULK_BROWSER")
    if wished:
        return wished
    return next(filter(None, map(shutil.which, PROGRAMS)), None) or npm_browser()


def npm_browser() -> str | None:
    """The browser of npm's package, installed where it was not; None where that can't be done."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        return None
    WHERE.mkdir(exist_ok=True)
    environ = {**os.environ, "TMPDIR": str(WHERE)}  # it unpacks itself into the directory of temporary files
    try:
        if not (WHERE / "node_modules").is_dir():
            install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(WHERE), PACKAGE]
            subprocess.run(install, check=True, timeout=NPM_S, capture_output=True)
        ran = subprocess.run(
            [node, "--eval", _UNPACK], check=True, timeout=NPM_S, capture_output=True, text=True, cwd=WHERE, env=environ
        )
    except (subprocess.SubprocessError, OSError) as error:
        said = getattr(error, "stderr", None) or error
        say(f"npm has no browser for this machine: {said!s:.300}")
        return None
    return ran.stdout.strip() or None


def say(text: str) -> None:
    """Write a line for whoever runs the tests."""
    sys.stdout.write(text + "\n")


def pytest_command(*options: str) -> list[str]:
    """pytest, over the browser tests."""
    return [sys.executable, "-m", "pytest", "-m", "browser", "tests/browser", *options]


def count() -> str:
    """How many tests there are."""
    listed = subprocess.run(
        pytest_command("--collect-only", "--quiet"), capture_output=True, text=True, timeout=NPM_S, check=False
    )
    match = re.search(r"^(\d+)(?:/\d+)? tests", listed.stdout, re.MULTILINE)
    return match.group(1) if match else "all"


def main() -> int:
    """What the process exits with."""
    has_playwright = importlib.util.find_spec("playwright") is not None
    browser = found_browser() if has_playwright else None
    if browser is None:
        missing = "install chromium or npm" if has_playwright else "pip could not install the extra `browser`"
        say(f"NOT RUN: {count()} browser tests: {missing}")
        return 1 if os.environ.get("CI") else 0
    try:
        return subprocess.run(
            pytest_command(*TOGETHER, *sys.argv[1:]),
            env={**os.environ, "BULK_BROWSER": browser},
            timeout=TESTS_S,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        say(f"The browser tests did not end within {TESTS_S} s")
        return 1


if __name__ == "__main__":
    sys.exit(main())
