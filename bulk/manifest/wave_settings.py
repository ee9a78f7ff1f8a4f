"""The part of `limits` that is about waves: their sizes, their gate, and budgets for error codes (interface.md §2)."""

from typing import Any

from bulk import quantities
from bulk.flaws import unknown_name
from bulk.manifest.fields import Fields
from bulk.model import ErrorCode
from bulk.quantities import Share

REST = "rest"
MOST_WAVES = 100
_CODES = tuple(code.value for code in ErrorCode)


def waves_of(part: Fields) -> dict[str, Any]:
    """Return `waves`, `gate`, `gate_after_s` and `errors` of a manifest's `limits`, with a flaw noted for each that
    can't be used."""
    gate, after_s = part.scalar("gate", ("auto", 0.0), _gate)
    errors: dict[str, Share] = {}
    given = part.inner("errors")
    for code in given.names():
        if code not in _CODES:
            given.node(code)
            given.flaw(code, unknown_name(code, _CODES, "error code"))
            continue
        share = given.scalar(code, None, quantities.share)
        if share is not None:
            errors[code] = share
    given.finish()
    stale = part.scalar("stale", None, quantities.share)
    if stale is not None:
        errors.setdefault(ErrorCode.STALE.value, stale)
    none: tuple[Share, ...] = ()
    sizes = part.scalar("waves", none, _waves)
    if not sizes and "waves" not in part.names() and (gate, after_s) != ("auto", 0.0):
        part.flaw("gate", "there is nothing that it could hold back: it needs limits.waves, such as [1, 10%, rest]")
    return {
        "waves": sizes,
        "gate": gate,
        "gate_after_s": after_s,
        "errors": errors,
    }


def _gate(given: object) -> tuple[str, float]:
    if isinstance(given, dict) and list(given) == ["after"]:
        return "auto", quantities.duration_s(given["after"])
    if given in ("auto", "manual"):
        return str(given), 0.0
    raise ValueError("expected auto, manual, or {after: 10m}")


def _waves(given: object) -> tuple[Share, ...]:
    expected = "expected a list of counts and shares such as [1, 1%, 10%, rest]"
    if not isinstance(given, list) or not given:
        raise ValueError(expected)
    if len(given) > MOST_WAVES:
        raise ValueError(f"{expected}; at most {MOST_WAVES} of them")
    sizes = given[:-1] if given[-1] == REST else given
    if REST in sizes:
        raise ValueError(f"{expected}; rest comes last")
    found = tuple(quantities.share(size) for size in sizes)
    if any(share.count == 0 or share.fraction == 0.0 for share in found):
        raise ValueError(f"{expected}; a wave has at least one item")
    return found
