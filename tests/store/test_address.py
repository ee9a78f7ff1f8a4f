"""How a store is named: without a secret, and off this machine only with proof of who answers."""

import pytest

from bulk.errors import UsageError
from bulk.store import address
from bulk.store.connections import StoreConnection, connect
from bulk.store.server.private_server import Server
from tests.canaries import STORE_PASSWORD as SECRET
from tests.store.places import connection_to
from tests.store.proxy import link_to


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://bulk:{SECRET}@db.example.com/bulk",
        f"postgresql://db.example.com/bulk?password={SECRET}",
        f"postgresql://bulk@db.example.com/bulk?sslpassword={SECRET}",
        f"service=bulk password={SECRET}",
        f"postgresql://bulk%3A{SECRET}@db.example.com/bulk",
    ],
)
def test_a_password_is_refused_and_not_repeated(text):
    """The message names PGPASSFILE, and not the password."""
    with pytest.raises(UsageError, match="PGPASSFILE") as refused:
        address.read(text)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["", "bulk", "host=x dbname=y", "mysql://x/y", "postgresql://[x/y", f"postgresql://a:{SECRET}@[x"]
)
def test_what_names_no_store_is_refused(text):
    """The message says what is expected, and repeats nothing of what was given."""
    with pytest.raises(UsageError, match=r"expected a libpq URI, .*, or service=NAME") as refused:
        address.read(text)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "", "%2Fvar%2Frun"])
def test_this_machine_needs_no_encryption(host, monkeypatch):
    """Sockets and loopback addresses are taken as they are."""
    monkeypatch.delenv("PGHOST", raising=False)
    assert "sslmode" not in address.read(f"postgresql://bulk@{host}/bulk").conninfo


def test_another_machine_must_prove_who_it_is(monkeypatch):
    """`verify-full` is what is asked for; whoever asks for less is refused, wherever they ask."""
    monkeypatch.delenv("PGSSLMODE", raising=False)
    found = address.read("postgresql://bulk@db.example.com/bulk").conninfo
    assert "sslmode=verify-full" in found
    for less in ("disable", "prefer", "require", "verify-ca"):
        with pytest.raises(UsageError, match="only sslmode=verify-full"):
            address.read(f"postgresql://bulk@db.example.com/bulk?sslmode={less}")
    for sly in (
        "postgresql://bulk@127.0.0.1,db.example.com/bulk?sslmode=require",
        "postgresql://bulk@localhost/bulk?hostaddr=203.0.113.7&sslmode=require",
        "postgresql://bulk@db.example.com/bulk?hostaddr=127.0.0.1&sslmode=require",
    ):
        with pytest.raises(UsageError, match="only sslmode=verify-full"):
            address.read(sly)
    monkeypatch.setenv("PGHOSTADDR", "203.0.113.7")
    assert "sslmode=verify-full" in address.read("postgresql://bulk@/bulk").conninfo
    monkeypatch.delenv("PGHOSTADDR")
    monkeypatch.setenv("PGSSLMODE", "require")
    with pytest.raises(UsageError, match="only sslmode=verify-full"):
        address.read("postgresql://bulk@db.example.com/bulk")


@pytest.fixture
def service(monkeypatch, tmp_path):
    """Writes a service file with these lines."""
    monkeypatch.delenv("PGSSLMODE", raising=False)
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))

    def write(*lines: str) -> None:
        (tmp_path / "services").write_text("\n".join(["[other]", "host=127.0.0.1", "[bulk]", *lines]) + "\n")

    return write


def test_a_service_must_prove_who_it_is_as_well(service, monkeypatch):
    """What a service file says of host and encryption counts as if it stood in a URI."""
    service("host=db.example.com", "dbname=bulk")
    assert "sslmode=verify-full" in address.read("service=bulk").conninfo
    service("host=db.example.com", "sslmode=verify-full", "sslrootcert=/etc/ca.pem")
    assert "sslrootcert" not in address.read("service=bulk").conninfo
    service("host=db.example.com", "sslmode=require")
    with pytest.raises(UsageError, match="only sslmode=verify-full"):
        address.read("service=bulk")
    monkeypatch.setenv("PGSERVICE", "bulk")
    with pytest.raises(UsageError, match="only sslmode=verify-full"):
        address.read("postgresql:///bulk")
    monkeypatch.delenv("PGSERVICE")
    service("host=127.0.0.1", "sslmode=disable")
    assert address.read("service=bulk").conninfo == "service=bulk"


def test_nothing_is_sent_to_another_machine_that_proves_nothing(service, postgres, monkeypatch, tmp_path):
    """A server without TLS is not talked to under a foreign name, whatever the address looks like."""
    with link_to(postgres) as (link, _):
        where = f"postgresql://postgres@db.example.com:{link.port}/postgres?hostaddr=127.0.0.1"
        with connection_to(where) as store, pytest.raises(UsageError, match="SSL"), store.using():
            pass
        lines = ("host=db.example.com", "hostaddr=127.0.0.1", f"port={link.port}", "user=postgres", "dbname=postgres")
        service(*lines)
        with connection_to("service=bulk") as store, pytest.raises(UsageError, match="SSL"), store.using():
            pass
        found = address.read("service=bulk")
        service(*lines, "sslmode=disable")  # as if only libpq knew where the file is
        unseen = address.StoreAddress(found.text, "service=bulk")
        with StoreConnection(unseen, "tests") as store, pytest.raises(UsageError, match="verify-full"), store.using():
            pass


def test_authorities_are_those_that_the_user_names(monkeypatch, tmp_path):
    """A file of root certificates that is named, or is where libpq looks, counts; else the system's authorities do."""
    monkeypatch.delenv("PGSSLROOTCERT", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    text = "postgresql://bulk@db.example.com/bulk"
    assert "sslrootcert=system" in address.read(text).conninfo
    assert "sslrootcert=system" not in address.read(f"{text}?sslrootcert=/etc/ca.pem").conninfo
    (tmp_path / ".postgresql").mkdir()
    (tmp_path / ".postgresql" / "root.crt").touch()
    assert "sslrootcert" not in address.read(text).conninfo


def test_a_password_that_is_missing_has_a_place(monkeypatch):
    """A server that asks for one: the message says where it belongs."""
    monkeypatch.setenv("PGPASSFILE", "/nowhere")
    monkeypatch.delenv("PGPASSWORD", raising=False)
    server = Server(is_durable=False)
    try:
        (server.folder / "data" / "pg_hba.conf").write_text("local all all scram-sha-256\n")
        server.start()
        with pytest.raises(UsageError, match=r"no password supplied; put it into a file of mode 0600.*PGPASSFILE"):
            connect(address.read(server.store()), "tests")
    finally:
        server.remove()
