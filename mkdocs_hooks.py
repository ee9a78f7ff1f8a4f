"""What `make docs` does beside MkDocs: files of the repository that pages link to are part of the site.

A link out of `docs/`, such as `../CHANGELOG.md`, works in the repository. In the site it leads to a copy below
`project/`; the links of a copied page are followed likewise.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent
COPIES = "project"
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)\s#]+)")
_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to and `docs/` does not hold."""
    waiting = [Path("docs", file.src_uri) for file in files.documentation_pages()]
    known = set(waiting)
    while waiting:
        page = waiting.pop()
        for target in _targets(page):
            if target in known or target.parts[0] == "docs" or not (ROOT / target).is_file():
                continue
            known.add(target)
            content = (ROOT / target).read_text()
            files.append(File.generated(config, f"{COPIES}/{target.as_posix()}", content=content))
            if target.suffix == ".md":
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Make links lead to the copies."""
    source = page.file.src_uri
    place = Path(source).relative_to(COPIES) if source.startswith(f"{COPIES}/") else Path("docs", source)

    def moved(found: re.Match[str]) -> str:
        target = _target(place, found[1])
        there = target.relative_to("docs") if target.parts[:1] == ("docs",) else Path(COPIES, target)
        return posixpath.relpath(there.as_posix(), posixpath.dirname(source) or ".")

    return _LINK.sub(moved, markdown)


def _targets(page: Path) -> list[Path]:
    """Return what a page links to, as paths of the repository."""
    text = _CODE.sub("", (ROOT / page).read_text())
    return [_target(page, link) for link in _LINK.findall(text)]


def _target(page: Path, link: str) -> Path:
    return Path(posixpath.normpath(posixpath.join(page.parent.as_posix(), link)))
