"""Bulk without what signs and checks as an App (the extra `app`)."""

import json
import subprocess
import sys
from pathlib import Path

from tests.e2e.credentials.test_apps import SEED

PLAIN = """
import sys
sys.modules["jwt"] = sys.modules["cryptography"] = None
from bulk.cli.app import main
sys.exit(main(sys.argv[1:]))
"""
LIGHT = """
import pkgutil, importlib, sys
import bulk
for each in pkgutil.walk_packages(bulk.__path__, "bulk."):
    if not each.name.endswith("__main__") and ".page" not in each.name:
        importlib.import_module(each.name)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"jwt", "cryptography", "cffi", "_cffi_backend"}))
"""
MANIFEST = """version: 1
platform:
  base_url: http://127.0.0.1:9/api/v3
  credentials:
    fleet:
      app:
        client_id: Iv1.x
        private_key: file:app.pem
jobs:
  r: {operation: readme.get, credential: fleet, items: [{owner: acme, repo: api}]}
"""


def plain(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of a plain installation."""
    command = [sys.executable, "-c", PLAIN, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def test_an_app_needs_its_extra(tmp_path: Path) -> None:
    """A manifest with an App's key is refused with its line and the way out, before anything is sent; a sandbox says
    the same of its Apps."""
    (tmp_path / "m.yaml").write_text(MANIFEST)
    refused = plain(tmp_path, "run", "m.yaml")
    assert refused.returncode == 2
    assert "m.yaml:8: platform.credentials.fleet.app.private_key: " in refused.stderr
    assert "pip install 'bulkops[app]'" in refused.stderr
    (tmp_path / "seed.json").write_text(json.dumps(SEED))
    sandbox = plain(tmp_path, "sandbox", "--seed-data", "seed.json")
    assert (sandbox.returncode, "pip install 'bulkops[app]'" in sandbox.stderr) == (2, True)


def test_nothing_imports_it_beforehand() -> None:
    """Not one module of Bulk imports what only Apps need."""
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
