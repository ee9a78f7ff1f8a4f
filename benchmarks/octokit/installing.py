"""octokit for the benchmarks that measure it: installed by npm, by name, at pinned versions, outside of the tree.

It stays in the user's cache directory, in a folder for each state of `package.json`, so that only the first run needs a
network. Nothing of it is part of the project.
"""

import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

HERE = Path(__file__).parent
NPM_INSTALL = ("install", "--loglevel=error", "--no-package-lock", "--no-audit", "--no-fund")


@cache
def octokit() -> tuple[str, ...] | None:
    """What starts `peer.mjs`, to be followed by its arguments; None, said in one line: it can't be had here."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        print("octokit is left out: node or npm is missing", flush=True)
        return None
    package = (HERE / "package.json").read_bytes()
    folder = user_cache_path("bulk-benchmarks") / f"octokit-{hashlib.sha256(package).hexdigest()[:12]}"
    if not folder.exists() and not _install(npm, folder):
        print("octokit is left out: npm could not install it", flush=True)
        return None
    # beside its packages, where node looks for them
    return node, str(shutil.copy(str(HERE / "peer.mjs"), str(folder)))


def _install(npm: str, folder: Path) -> bool:
    """Into a folder beside it, which gets the name when all is there: whether it worked."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="octokit-", dir=folder.parent) as name:
        made = Path(name) / "made"
        made.mkdir()
        shutil.copy(HERE / "package.json", made)
        if subprocess.run([npm, *NPM_INSTALL], check=False, cwd=made, stdout=subprocess.DEVNULL).returncode:
            return False
        made.rename(folder)
    return True
