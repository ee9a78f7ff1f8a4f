"""Makers of the proofs that operations ask for: `proofs.entry(KINDS, proofs.naming(id=item.hook_id))`.

The kinds of its fields are the shape of an answer; the fields that name the item are its identity, compared in the
platform's normal form. Where the specification shows no body (204, 205, an attachment's 202) there is nothing to prove:
the status stands for itself. No flaw repeats a value of the answer. Source: specification, Resources and their fields.
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
"""Takes an object of an answer; returns why it does not belong to the item, and an empty text where it may."""

NUMBER = (int, str)
"""The kind of an id, which may be written as a text."""

WITHOUT_BODY = frozenset((204, 205))
"""Statuses whose answers have no body, so that the status alone is the proof."""


def entry(kinds: Kinds, *about: About) -> Proof:
    """Return the proof that an answer is an object with these fields, in which every `about` finds no flaw."""
    return Proof(partial(_flaw_of_body, kinds), partial(_flaw_of_item, about) if about else None)


def listing(kinds: Kinds, *about: About) -> Proof:
    """Return the proof that an answer is a list, empty or of objects with these fields, without a flaw by `about`."""
    return Proof(partial(_flaw_of_list, kinds), partial(_flaw_of_items, about) if about else None)


def listing_in(field: str, kinds: Kinds, totals: Kinds) -> Proof:
    """Return the proof that an answer is an object with `totals`, and in `field` a list of objects of these kinds."""
    return Proof(partial(_flaw_of_list_in, field, kinds, totals))


def naming(**names: Any) -> About:
    """Return a check that an object names the item: these fields have these values, whatever their case."""
    return partial(_flaw_of_names, names)


def of_kind(word: str, *names: str) -> About:
    """Return a check that the object's own `url` names no other organization (`orgs`), enterprise or repository."""
    return partial(_flaw_of_url, f"/{word}/", f"/{word}/{'/'.join(names)}/".casefold())


def flaw_of_object(found: Any, kinds: Kinds) -> str:
    """Return what is wrong with `found`; empty where it is an object with these fields."""
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
