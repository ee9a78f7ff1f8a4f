"""Whether a thing exists. Of an organization no endpoint of the specification tells, but one lists its rulesets.

A single 404 says too little, so that a second look has to say the same. A 200 with a list of its own rulesets says that
an organization exists; a 404 says that it does not, or that the credential may not see it. Source: specification,
Rulesets; operations.md, 404 rule.
"""

import hashlib
from collections.abc import Generator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from bulk import urls
from bulk.model import Reply, Request
from bulk.proof import Proof
from bulk_jobs.shared import normal_forms, proofs

_RULESET = {"id": int, "name": str}


def look_surely(look: Request) -> Generator[Request, Reply, Reply]:
    """Return the answer to a look, or where it is a 404 that to a second one: a single 404 says too little, and every
    second answer may come from a copy that is wrong."""
    found = yield look
    return (yield replace(look, is_fresh=True)) if found.status == 404 else found


def can_see(org: str, pause_s: float = 0.0) -> Generator[Request, Reply, bool]:
    """Return whether the credential sees an organization of that name, after a pause (seconds).

    If it does, a 404 for a thing in the organization means that the thing does not exist.
    """
    reply = yield Request(
        method="GET",
        path=rulesets_path(org),
        query="per_page=1",
        accept=frozenset((200, 404)),
        is_fresh=True,
        pause_s=pause_s,
        proof=rulesets_of(org),
    )
    return reply.status == 200


def can_see_any(org: str) -> Generator[Request, Reply, bool]:
    """Return whether an organization that nobody has is seen as well: a gateway answers any request with an empty
    list."""
    return (yield from can_see(hashlib.sha256(org.encode()).hexdigest()[:32]))


def rulesets_path(org: str) -> str:
    """Return the path of the list of an organization's rulesets."""
    return f"/orgs/{urls.segment(org)}/rulesets"


def rulesets_of(org: str) -> Proof:
    """Return the proof that an answer is a list of rulesets, none of which is another organization's."""
    return proofs.listing(_RULESET, partial(flaw_of_source, org))


def is_of_organization(ruleset: Mapping[str, Any]) -> bool:
    """Return whether a ruleset belongs to an organization: a list may also show rulesets of its enterprise."""
    kind = ruleset.get("source_type")
    return kind is None or normal_forms.name(kind) == "organization"


def flaw_of_source(org: str, ruleset: Mapping[str, Any]) -> str:
    """Return why a ruleset belongs to another organization; empty where it may be this one's, or is an enterprise's."""
    source = ruleset.get("source")
    is_other = is_of_organization(ruleset) and source is not None and normal_forms.name(source) != org.lower()
    return "it shows a ruleset of another organization" if is_other else ""
