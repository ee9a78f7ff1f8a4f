"""What answers of success must show, said by the operations: `proofs.entry(KINDS, proofs.naming(id=item.hook_id))`.

The kinds of the fields are an answer's shape; what names the item in it is its identity, compared in the platform's
normal form. Where the specification shows no body (204, 205, an attachment's 202) there is nothing to prove: the status
stands for itself. No flaw repeats a value of the answer. Source: specification, Resources and their fields.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bulk.model import Reply
from bulk.proof import Proof
from bulk_jobs.shared import normal_forms

Kind = type | tuple[type, ...]
Kinds = Mapping[str, Kind]
"""Field -> type of its value."""

About = Callable[[Mapping[str, Any]], str]
"""Takes an object of an answer; returns why it is not the item's, and nothing where it may be."""

NUMBER = (int, str)
"""An id that may be written as a text."""

WITHOUT_BODY = frozenset((204, 205))
"""Statuses whose answers hold nothing, so that they prove what they say."""


def entry(kinds: Kinds, *about: About) -> Proof:
    """Ask for an answer that is an object with these fields, which is what `about` says of it."""
    return Proof(partial(_flaw_of_body, kinds), partial(_flaw_of_item, about) if about else None)


def listing(kinds: Kinds, *about: About) -> Proof:
    """Ask for an answer that is a list, empty or of objects with these fields, each as `about` says of it."""
    return Proof(partial(_flaw_of_list, kinds), partial(_flaw_of_items, about) if about else None)


def listing_in(field: str, kinds: Kinds, totals: Kinds) -> Proof:
    """Ask for an answer that is an object with `totals`, and in `field` a list of objects with these fields."""
    return Proof(partial(_flaw_of_list_in, field, kinds, totals))


def naming(**names: Any) -> About:
    """Ask that it names the item: these fields have these values, whatever their case."""
    return partial(_flaw_of_names, names)


def of_kind(word: str, *names: str) -> About:
    """Ask that its own `url`, where that says of which organization (`orgs`), enterprise or repository it is, says
    this one."""
    return partial(_flaw_of_url, f"/{word}/", f"/{word}/{'/'.join(names)}/".casefold())


def flaw_of_object(found: Any, kinds: Kinds) -> str:
    """Return what `found` lacks; nothing where it is an object that holds these fields."""
    if not isinstance(found, dict):
        return "it is not an object"
    for field, kind in kinds.items():
        value = found.get(field)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            return f"it holds no {field}" if value is None else f"its {field} is of another kind"
    return ""


def _flaw_of_body(kinds: Kinds, reply: Reply) -> str:
    return "" if reply.status in WITHOUT_BODY else flaw_of_object(reply.body, kinds)


def _flaw_of_item(about: tuple[About, ...], reply: Reply) -> str:
    return "" if reply.status in WITHOUT_BODY else _flaw_about(about, reply.body)


def _flaw_of_list(kinds: Kinds, reply: Reply) -> str:
    if not isinstance(reply.body, list):
        return "it is not a list"
    return next((f"in its list {flaw}" for each in reply.body if (flaw := flaw_of_object(each, kinds))), "")


def _flaw_of_list_in(field: str, kinds: Kinds, totals: Kinds, reply: Reply) -> str:
    flaw = flaw_of_object(reply.body, {**totals, field: list})
    if flaw:
        return flaw
    return next((f"in {field} {flaw}" for each in reply.body[field] if (flaw := flaw_of_object(each, kinds))), "")


def _flaw_of_items(about: tuple[About, ...], reply: Reply) -> str:
    return next((flaw for each in reply.body if (flaw := _flaw_about(about, each))), "")


def _flaw_about(about: tuple[About, ...], found: Mapping[str, Any]) -> str:
    for look in about:
        flaw = look(found)
        if flaw:
            return flaw
    return ""


def _flaw_of_names(names: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    for field, wanted in names.items():
        if normal_forms.name(found.get(field)) != normal_forms.name(wanted):
            return f"its {field} is not {wanted}"
    return ""


def _flaw_of_url(word: str, wanted: str, found: Mapping[str, Any]) -> str:
    url = found.get("url")
    if not isinstance(url, str) or word not in url or wanted in url:
        return ""
    return "" if wanted in f"{normal_forms.unescaped(url)}/".casefold() else "its url names another one"
