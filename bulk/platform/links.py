"""The reading of links, for the adapters: it lies with the shared words, because operations follow pages too."""

from bulk.links import LONGEST_CHARS, has_next_link, next_link, within_base

__all__ = ["LONGEST_CHARS", "has_next_link", "next_link", "within_base"]
