"""Secrets of credentials in what is written, and logins that many processes share: the command against a sandbox.

python -m benchmarks.compared.secrets_and_logins [BAR …]
"""

import base64
import json
import re
import subprocess
import sys
import textwrap
import urllib.request
from collections import Counter
from collections.abc import Iterator
from typing import Any

from benchmarks.compared.credentials import BULK, Bench, Row, apps, items, main, private
from benchmarks.harness.measuring import environment

CANARY = "canary-of-a-reader+0123456789/abcdefghij"


def silent(bench: Bench) -> Iterator[Row]:
    """Nothing of keys, JWTs and tokens in what is written."""
    with bench.sandbox(seed=apps(20, 3)):
        process = bench.start(items(20, 3), None, ("--log-level", "debug", "--cache", "kept-silent"))
        out, err = process.communicate()
    key = private(bench.keys[0]).splitlines()[5]
    said = [out.encode(), err.encode()]
    for folder in (bench.folder / f"run-{bench.runs}", bench.folder / "kept-silent"):
        said += [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    hits = sum(data.count(mark) for data in said for mark in (key, b"eyJ", b"ghs_", b"PRIVATE KEY"))
    yield "keys, JWTs and tokens in files, logs, output", f"{hits} hits", "0", hits == 0
    yield from _echoed(bench)


def _echoed(bench: Bench) -> Iterator[Row]:
    """READMEs that hold the reader's own token, each in another spelling."""
    forms = [*_spellings(CANARY), "\n".join(textwrap.wrap(base64.b64encode(CANARY.encode()).decode(), 8))]
    forms.append("\n".join(textwrap.wrap(CANARY.encode().hex(), 10)))
    seed: dict[str, Any] = {"tokens": [{"token": CANARY, "user": "octoadmin", "scopes": ["repo"]}]}
    seed["repositories"] = [
        {"organization": "acme-eng", "name": f"echo-{number}", "files": {"README.md": f"before {form} after"}}
        for number, form in enumerate(forms)
    ]
    (bench.folder / "canary").write_text(CANARY)
    (bench.folder / "canary").chmod(0o600)
    wanted = [{"owner": "acme-eng", "repo": f"echo-{number}"} for number in range(len(forms))]
    found = 0
    for media in ("json", "raw"):
        with bench.sandbox(seed=seed):
            more = ("--log-level", "debug", "--no-cache")
            process = bench.start(wanted, {"reader": "file:canary"}, more, given={"media_type": media})
            out, err = process.communicate()
        said = [out.encode(), err.encode()]
        said += [path.read_bytes() for path in (bench.folder / f"run-{bench.runs}").rglob("*") if path.is_file()]
        for data in said:
            plain = data.replace(b"\\n", b"").replace(b"\n", b"").lower()
            found += sum(plain.count(form.lower().encode()) for form in _spellings(CANARY))
    ended = dict(bench.outcomes())
    is_met = found == 0 and ended == {"succeeded": len(forms)}
    yield f"a token echoed in {len(forms)} spellings, twice", f"{found} hits, {ended}", "0", is_met


def _spellings(text: str) -> list[str]:
    """A token as it may be written: plainly, in hex, in Base64 behind 0, 1 or 2 bytes, and escaped in two ways."""
    raw = text.encode()
    found = [text, raw.hex(), "".join(f"%{byte:02x}" for byte in raw), "".join(f"\\u{byte:04x}" for byte in raw)]
    for offset in range(3):
        whole = base64.b64encode(b"x" * offset + raw).decode()
        found.append(whole[-(-offset * 8 // 6) : (offset + len(raw)) * 8 // 6])
    return found


def login(bench: Bench) -> Iterator[Row]:
    """Sixteen processes use one login whose token has ended."""
    fleet = {
        "slug": "fleet",
        "client_id": "Iv1.fleet",
        "interval": 0.2,
        "installations": [{"organization": "acme-eng"}],
    }
    seed = {"users": [{"login": "dora", "password": "dora-password"}], "apps": [fleet]}
    logins = bench.folder / "logins"
    around = {**environment(), "BULK_LOGINS": str(logins)}
    with bench.sandbox(seed=seed):
        command = [*BULK, "login", "dora", "--client-id", "Iv1.fleet", "--base-url", bench.url]
        process = subprocess.Popen(command, cwd=bench.folder, env=around, text=True, stderr=subprocess.PIPE)
        assert process.stderr is not None
        found = re.search(r"Open (\S+) and type the code (\S+)", process.stderr.readline())
        assert found is not None
        who = {"Authorization": "Basic " + base64.b64encode(b"dora:dora-password").decode(), "User-Agent": "bench"}
        asked = urllib.request.Request(found[1], f"user_code={found[2]}".encode(), who)
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=10).close()
        process.communicate()
        kept = json.loads((logins / "dora.json").read_text())
        (logins / "dora.json").write_text(json.dumps(kept | {"ends_at": 1.0}))
        about = {"base_url": bench.url, "vendor": "github", "credentials": {"reader": {"login": "dora"}}}
        job = {
            "operation": "readme.get",
            "credential": "reader",
            "items": [{"owner": "acme-eng", "repo": "hello-world"}],
        }
        (bench.folder / "login.json").write_text(json.dumps({"version": 1, "platform": about, "jobs": {"r": job}}))
        asked_before = len([line for line in bench.journal() if "/login/oauth" in line["path"]])
        runs = [
            subprocess.Popen(
                [*BULK, "run", "login.json", "--run-dir", f"login-{number}", "--progress", "none", "--no-cache"],
                cwd=bench.folder,
                env=around,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for number in range(16)
        ]
        codes = Counter(each.wait() for each in runs)
        refreshed = len([line for line in bench.journal() if "/login/oauth" in line["path"]]) - asked_before
    figure = f"{refreshed} refreshed, exit codes {dict(codes)}"
    yield "16 processes, one login that has ended", figure, "1; all 0", refreshed == 1 and codes == {0: 16}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], {each.__name__: each for each in (silent, login)}))
