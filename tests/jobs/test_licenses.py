"""`license.get` and `committers.get`."""

from bulk.model import OutcomeKind
from bulk_jobs.licenses import GetCommitters, GetLicense
from tests.jobs.driver import flaws, reply, run

LICENSE, COMMITTERS = GetLicense(), GetCommitters()
URL = "/enterprises/acme/settings/billing/advanced-security"


def report(names, total=2):
    """A page of the committers report."""
    return {"total_advanced_security_committers": 3, "total_count": total, "repositories": [{"name": n} for n in names]}


def test_license():
    """One read; its object is the result; unchanged where the store had it."""
    body = {"seats": 100, "seats_used": 7, "kind": "standard"}
    driven = run(LICENSE, {}, reply(body=body))
    assert driven.shown() == ["GET /enterprise/settings/license"]
    assert (driven.outcome.kind, driven.outcome.result) == (OutcomeKind.SUCCEEDED, body)
    assert run(LICENSE, {}, reply(body=body, is_unchanged=True)).outcome.kind is OutcomeKind.UNCHANGED
    assert run(LICENSE, {}, reply(body=[])).is_disbelieved


def test_committers_of_all_pages():
    """The totals stand once, beside the repositories of every page."""
    link = {"link": f'<https://x/api/v3{URL}?page=2>; rel="next"'}
    driven = run(COMMITTERS, {"enterprise": "acme"}, reply(body=report("a"), headers=link), reply(body=report("b")))
    assert driven.shown() == [f"GET {URL}?per_page=100", f"GET {URL}?per_page=100&page=2"]
    assert driven.outcome.result == report("ab")


def test_committers_of_a_product():
    """The product is part of the query, and only where it is given."""
    driven = run(
        COMMITTERS, {"enterprise": "acme", "advanced_security_product": "code_security"}, reply(body=report("ab"))
    )
    assert driven.shown() == [f"GET {URL}?advanced_security_product=code_security&per_page=100"]


def test_committers_that_did_not_change():
    """A report from the store is unchanged."""
    driven = run(COMMITTERS, {"enterprise": "acme"}, reply(body=report("ab"), is_unchanged=True))
    assert driven.outcome.kind is OutcomeKind.UNCHANGED


def test_committers_that_changed_while_they_were_read():
    """Fewer or more repositories than counted are said so."""
    driven = run(COMMITTERS, {"enterprise": "acme"}, reply(body=report("a", total=5)))
    assert "counted 5 repositories and listed 1" in driven.outcome.result["note"]


def test_committers_of_another_shape():
    """A list where an object belongs is a bad answer."""
    assert run(COMMITTERS, {"enterprise": "acme"}, reply(body=[])).is_disbelieved


def test_committers_checks():
    """The enterprise is a slug."""
    assert set(flaws(COMMITTERS, {"enterprise": "a/b"})) == {"enterprise"}
    assert not flaws(COMMITTERS, {"enterprise": "acme"})
