"""Whether an organization is there: no endpoint of the specification reads one, but one lists its rulesets.

200 with a list that is its own says that it is there, 404 that it is not or that the credential may not see it. Source:
specification, Rulesets; operations.md, 404 rule.
"""

from collections.abc import Generator, Mapping
from functools import partial
from typing import Any

from bulk import urls
from bulk.model import Reply, Request
from bulk.proof import Proof
from bulk_jobs.shared import normal_forms, proofs

_RULESET = {"id": int, "name": str}


def can_see(org: str, pause_s: float = 0.0) -> Generator[Request, Reply, bool]:
    """Return whether the credential sees an organization of that name, after a pause (seconds); a 404 beside it is
    absence."""
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


def rulesets_path(org: str) -> str:
    """Return where the rulesets of an organization are listed."""
    return f"/orgs/{urls.segment(org)}/rulesets"


def rulesets_of(org: str) -> Proof:
    """Return a list of rulesets, none of which is another organization's."""
    return proofs.listing(_RULESET, partial(flaw_of_source, org))


def is_of_organization(ruleset: Mapping[str, Any]) -> bool:
    """Return whether it is an organization's own: a list may also show what an enterprise has laid upon it."""
    kind = ruleset.get("source_type")
    return kind is None or normal_forms.name(kind) == "organization"


def flaw_of_source(org: str, ruleset: Mapping[str, Any]) -> str:
    """Return why a ruleset is not this organization's, although it is an organization's; nothing where it may be."""
    source = ruleset.get("source")
    is_other = is_of_organization(ruleset) and source is not None and normal_forms.name(source) != org.lower()
    return "it shows a ruleset of another organization" if is_other else ""
