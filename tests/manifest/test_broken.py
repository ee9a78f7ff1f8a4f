"""Every broken manifest is refused before anything is sent, and the message leads to the place."""

import pytest

from bulk.check.checking import check
from bulk.errors import ManifestError
from bulk.manifest.reading import Overrides, read_manifest
from tests.manifest.broken import MANIFESTS, Broken


@pytest.mark.parametrize("broken", MANIFESTS, ids=lambda broken: broken.name)
def test_flaws_are_named_with_file_line_and_field(broken: Broken, tmp_path, monkeypatch):
    """A broken manifest ends with exit 2; each of its flaws is named with file, line, field and what was expected."""
    folder, workspace = tmp_path / "work", tmp_path / "run"
    folder.mkdir()
    workspace.mkdir()
    path = broken.write(folder)
    with pytest.raises(ManifestError) as caught:
        check(read_manifest(path, Overrides(), {}), workspace)
    text = str(caught.value)
    assert caught.value.exit_code == 2
    for flaw in broken.flaws:
        line = next((line for line in text.splitlines() if line.startswith(f"{folder}/{flaw.place}")), None)
        assert line is not None, f"no flaw at {flaw.place!r} in:\n{text}"
        assert flaw.words in line
    assert len(caught.value.flaws) == len(broken.flaws), text
    assert not broken.never or broken.never not in text
    assert not (workspace / "check.json").exists()
    assert not (workspace / "index.db").exists()


def test_there_are_at_least_thirty():
    """The list has every case that the issue names, and no name twice."""
    assert len({broken.name for broken in MANIFESTS}) == len(MANIFESTS) >= 30
