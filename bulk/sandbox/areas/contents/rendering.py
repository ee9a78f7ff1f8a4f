"""The html media type: a file as a page fragment. Markdown is rendered, any other file is shown as it is.

Nothing of the file reaches the page as markup of its own: raw HTML in Markdown is escaped, and links with a scheme
that runs code stay text.
"""

from __future__ import annotations

from functools import cache
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MARKDOWN_ENDINGS = (".md", ".markdown", ".mdown", ".mkdn")


def rendered(path: str, data: bytes) -> bytes:
    """Return a file's bytes as HTML (UTF-8): an `<article>` of Markdown, a `<pre>` of the rest, in a `<div>` with the
    path."""
    text = data.decode("utf-8", "replace")
    shown = escape(path)
    if path.lower().endswith(MARKDOWN_ENDINGS):
        kind, inner = "md", f'<article class="markdown-body">{_parser().render(text)}</article>'
    else:
        kind, inner = "plain", f"<pre>{escape(text)}</pre>"
    return f'<div id="file" class="{kind}" data-path="{shown}">{inner}</div>'.encode()


@cache
def _parser() -> MarkdownIt:
    # imported late, because all sandboxes start, and few are asked for HTML
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
