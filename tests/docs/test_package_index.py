"""What a package index would show: whole metadata, and a README whose links lead somewhere there."""

import importlib.util
import re
from importlib.metadata import metadata
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]


def rendered() -> str:
    """The README of the installed package as HTML, with tables, as an index renders it."""
    text = str(metadata("bulkops").json["description"])
    assert "# Bulk" in text
    html: str = MarkdownIt("commonmark").enable("table").render(text)
    return html


def test_no_link_leads_to_a_file_beside_the_readme() -> None:
    """An index has the README alone: its links are whole addresses or headings, and no image is missing."""
    html = rendered()
    targets = re.findall(r'(?:href|src)="([^"]+)"', html)
    assert [target for target in targets if not re.match(r"https?://|#", target)] == []
    heads = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in re.findall(r"<h\d>(.*?)</h\d>", html)}
    assert {target[1:] for target in targets if target.startswith("#")} <= heads


def test_nothing_else_is_lost() -> None:
    """The text of links stays, code and tables are as they were, and links that are whole stay links."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = "[a *b*](docs/c.md#d) [e](https://x.example/y) [f](#g) [LICENSE](LICENSE) ![h](i.png) `x[0](1)`"
    assert module.without_relative_links(text).startswith("a *b* [e](https://x.example/y) [f](#g) LICENSE ![h](i.png)")
    html = rendered()
    assert 2 * html.count("<pre>") == len(re.findall(r"^```", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert "<table>" in html


def test_the_metadata_is_complete() -> None:
    """Name, summary, author, license, Python and classifiers are said; no address that was invented."""
    told = metadata("bulkops")
    assert told["Author"] == "The Bulk team"
    assert told["License-Expression"] == "Apache-2.0"
    assert told["Requires-Python"] == ">=3.11"
    assert told["Description-Content-Type"] == "text/markdown"
    assert told["Summary"]
    extras = {"speed", "app", "cluster", "tables", "audit", "notify", "dev", "docs", "browser"}
    assert set(told.get_all("Provides-Extra") or ()) == extras
    classifiers = told.get_all("Classifier") or []
    assert {"Typing :: Typed", "Programming Language :: Python :: 3.13", "Framework :: AnyIO"} <= set(classifiers)
    assert told.get_all("Project-URL") is None
