"""The results of policies, as text, JSON, SARIF and JUnit. Pure."""

import xml.sax.saxutils as escaping
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec

from bulk.audit.policies.judging import FIXED, KNOWN, NEW, UNKNOWN, WAIVED, Judgement, PolicyResult, Violation
from bulk.audit.policies.policy import SEVERITIES
from bulk.report.render.formatting import count, counted

FORMATS = ("text", "json", "sarif", "junit")
MOST_SARIF = 25_000
"""Results in one SARIF file (count): code hosts refuse more."""

MOST_SHOWN = 10
MOST_IN_CASE = 100
_LEVELS = dict(zip(SEVERITIES, ("error", "warning", "note"), strict=True))


def lines(judgement: Judgement, *, is_all: bool = False) -> Iterator[str]:
    """Yield a line for each policy, and the first of its violations that are not waived."""
    for policy in judgement.policies:
        counts = [(getattr(policy, word), word) for word in (NEW, KNOWN, FIXED, UNKNOWN, WAIVED)]
        said = ", ".join(f"{count(number)} {word}" for number, word in counts if number) or "nothing"
        blind = f"; {counted(policy.unread, 'item')} could not be read" if policy.unread else ""
        yield f"{_state(policy):4} {policy.name} ({policy.severity}): {said}{blind}"
        open_ = [each for each in judgement.violations if each.policy == policy.name and each.status in (NEW, KNOWN)]
        open_.sort(key=lambda each: each.status != NEW)
        for violation in open_ if is_all else open_[:MOST_SHOWN]:
            since = "" if violation.status == NEW else f" (since {violation.first_seen[:10]})"
            yield f"       {violation.message}{since}"
        if not is_all and len(open_) > MOST_SHOWN:
            yield f"       and {counted(len(open_) - MOST_SHOWN, 'more violation')}"
    yield from (f"Note: {note}" for note in judgement.notes)


def _state(policy: PolicyResult) -> str:
    return "FAIL" if policy.is_failed else "?" if policy.is_unsure else "ok"


def sarif(judgement: Judgement, version: str, folder: Path) -> bytes:
    """Return one SARIF run: the most severe results first, at most 25,000; a note tells of a cut.

    Args:
        folder: folder from which paths of policies begin, as code hosts want it: the root of a checkout.
    """
    open_ = [each for each in judgement.violations if each.status != FIXED]
    places = {policy.name: _uri(Path(policy.path), folder) for policy in judgement.policies}
    notifications = [{"level": "note", "message": {"text": note}} for note in judgement.notes]
    if len(open_) > MOST_SARIF:
        text = f"{len(open_):,} results; the first {MOST_SARIF:,} are here, the most severe first"
        notifications.append({"level": "warning", "message": {"text": text}})
    run = {
        "tool": {
            "driver": {
                "name": "bulk",
                "version": version,
                "rules": [
                    {
                        "id": policy.name,
                        "shortDescription": {"text": policy.description or policy.name},
                        "defaultConfiguration": {"level": _LEVELS[policy.severity]},
                    }
                    for policy in judgement.policies
                ],
            }
        },
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notifications}],
        "results": [_sarif_result(each, places[each.policy]) for each in open_[:MOST_SARIF]],
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return _formatted({"$schema": schema, "version": "2.1.0", "runs": [run]})


def _uri(path: Path, folder: Path) -> str:
    """Return a relative URI reference, or an absolute URI for a path outside `folder`."""
    if path.is_absolute() and not path.is_relative_to(folder):
        return path.as_uri()
    return quote((path.relative_to(folder) if path.is_absolute() else path).as_posix())


def _sarif_result(violation: Violation, place: str) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": violation.policy,
        "level": _LEVELS[violation.severity],
        "message": {"text": violation.message},
        "baselineState": "new" if violation.status == NEW else "unchanged",
        "partialFingerprints": {"bulk/v1": violation.fingerprint},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": place}, "region": {"startLine": 1}}},
        ],
    }
    if violation.waiver:
        result["suppressions"] = [{"kind": "external", "justification": violation.waiver}]
    return result


def junit(judgement: Judgement, name: str) -> bytes:
    """Return one test case for each policy."""
    failures = sum(policy.is_failed for policy in judgement.policies)
    skipped = sum(_state(policy) == "?" for policy in judgement.policies)
    counts = f'tests="{len(judgement.policies)}" failures="{failures}" errors="0" skipped="{skipped}"'
    head = f"name={escaping.quoteattr(name)} {counts}"
    parts = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuite {head}>"]
    for policy in judgement.policies:
        case = f"<testcase classname={escaping.quoteattr(name)} name={escaping.quoteattr(policy.name)}"
        open_ = [each for each in judgement.violations if each.policy == policy.name and each.status in (NEW, KNOWN)]
        if not policy.is_failed:
            unread = f"{counted(policy.unread, 'item')} could not be read"
            why = counted(policy.unknown, "unknown violation") if policy.unknown else unread
            parts.append(case + (f'><skipped message="{why}"/></testcase>' if policy.is_unsure else "/>"))
            continue
        said = "\n".join(_for_xml(each.message) for each in open_[:MOST_IN_CASE])
        more = f"\nand {len(open_) - MOST_IN_CASE:,} more" if len(open_) > MOST_IN_CASE else ""
        message = escaping.quoteattr(counted(len(open_), "violation"))
        parts.append(f"{case}><failure type={escaping.quoteattr(policy.severity)} message={message}>")
        parts.append(f"{escaping.escape(said + more)}</failure></testcase>")
    parts.append("</testsuite>")
    return ("\n".join(parts) + "\n").encode()


def _for_xml(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _formatted(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
