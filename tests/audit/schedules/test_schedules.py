"""`bulk schedule`: times are right at changes of clock, and each form is what its scheduler takes."""

import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from pathlib import Path

import kubernetes_validate
import pytest
from ruamel.yaml import YAML

from bulk.audit.schedules.audited import Audited
from bulk.audit.schedules.emitting import emit
from bulk.audit.schedules.systemd import calendars_of
from bulk.audit.schedules.times import times_of
from bulk.errors import UsageError
from tests.e2e.support.platform import Home

AUDITED = Audited(
    name="fleet",
    manifest=Path("/srv/fleet.yaml"),
    history=Path("/srv/audits/fleet"),
    folder=Path("/srv"),
    options=(),
    program=["/usr/bin/bulk"],
    secrets=(),
    image="x.example.com/b:1",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with an audit."""
    home = Home(tmp_path_factory.mktemp("schedule"))
    jobs = {"hooks": {"operation": "webhook.list", "items": [{"org": "acme"}]}}
    home.manifest("https://code.example.com/api/v3", jobs, "fleet.yaml", audit={"notify": [{"to": "env:CHAT"}]})
    return home


def emitted(home, form, *options):
    """What is written, and what is said beside it."""
    ran = home.run("schedule", "fleet.yaml", "--emit", form, *options)
    assert ran.exit_code == 0, ran.err
    return ran.out, ran.err


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize("expression", ["30 2 * * *", "0 1 * * *", "15 3 * * *"])
def test_each_day_has_one_night(zone, expression):
    """Once on every day of two years, on those with a change of clock too."""
    times = times_of(expression, zone)
    end = datetime(2029, 1, 1, tzinfo=UTC)
    days = [at.date() for at in takewhile(lambda at: at < end, times.after(datetime(2026, 12, 31, 12, tzinfo=UTC)))]
    assert len(days) == len(set(days))
    assert all(later - earlier == timedelta(days=1) for earlier, later in pairwise(days))
    assert len(days) >= 730


@pytest.mark.parametrize(
    ("expression", "zone", "left_out"),
    [
        ("30 2 * * *", "Europe/Berlin", 10),
        ("30 2 * * *", "America/New_York", 10),
        ("15 2 * * *", "Australia/Lord_Howe", 10),
        ("45 1 * * *", "Australia/Lord_Howe", 0),
        ("30 23 * * *", "America/Nuuk", 10),
        ("30 0 * * *", "Africa/Cairo", 10),
        ("30 0 * * *", "America/Havana", 10),
        ("45 2 * * *", "Asia/Kolkata", 0),
    ],
)
def test_systemd_starts_one_night_each_day(expression, zone, left_out):
    """What is written for systemd, as systemd itself reads it over both changes of the clock: once each night, also
    where the clock leaves the time out, or has it twice."""
    now = datetime(2027, 2, 20, 12, tzinfo=UTC)
    timer = emit("systemd", times_of(expression, zone), AUDITED, now).files["bulk-audit-fleet.timer"]
    calendars = [line.partition("=")[2] for line in timer.splitlines() if line.startswith("OnCalendar=")]
    assert len(calendars) == 1 + left_out
    if shutil.which("systemd-analyze"):
        nights = sorted(elapses(calendars[:2], now))
        assert len(nights) == DAYS + bool(left_out)
        assert all(timedelta(hours=22) <= later - earlier <= timedelta(hours=26) for earlier, later in pairwise(nights))


DAYS = 262
"""From February until after the change in November (count)."""


def elapses(calendars, now):
    """When systemd would start something, as it tells."""
    command = ["systemd-analyze", "calendar", f"--iterations={DAYS}", f"--base-time={now:%Y-%m-%d %H:%M} UTC"]
    environ = {**os.environ, "TZ": "UTC"}
    said = subprocess.run([*command, *calendars], check=True, capture_output=True, text=True, env=environ).stdout
    found = re.findall(r"(?:Next elapse|Iter\. #\d+): \w+ (\S+ \S+) UTC", said)
    return [datetime.fromisoformat(at).replace(tzinfo=UTC) for at in found]


@pytest.mark.parametrize(
    ("expression", "calendars"),
    [
        ("30 2 * * *", ["*-*-* 02:30:00 Europe/Berlin"]),
        ("*/20 2,5 * * 1-5", ["Mon,Tue,Wed,Thu,Fri *-*-* 02,05:00,20,40:00 Europe/Berlin"]),
        ("0 4 1 */6 *", ["*-01,07-01 04:00:00 Europe/Berlin"]),
        ("0 4 1 * 7", ["*-*-01 04:00:00 Europe/Berlin", "Sun *-*-* 04:00:00 Europe/Berlin"]),
        ("* * * * *", ["*-*-* *:*:00 Europe/Berlin"]),
    ],
)
def test_a_cron_expression_becomes_a_calendar(expression, calendars):
    """As systemd writes it; where a day of the month or of the week is enough, there are two."""
    assert list(calendars_of(times_of(expression, "Europe/Berlin"))) == calendars
    if shutil.which("systemd-analyze"):
        for calendar in calendars:
            subprocess.run(["systemd-analyze", "calendar", calendar], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("0 2 * * 7", "0 2 * * 0"),
        ("0 2 * * 5-7", "0 2 * * 0,5,6"),
        ("0 2 1 * 1-7/3", "0 2 1 * 0,1,4"),
        ("0  2 * * wed", "0 2 * * wed"),
        ("0 2 * jul-sep */2", "0 2 * jul-sep */2"),
    ],
)
def test_every_scheduler_can_read_an_expression(written, read):
    """Kubernetes and Actions don't know Sunday as 7; names stay."""
    assert times_of(written, "UTC").expression == read


def test_systemd_takes_the_units(home):
    """The service runs what exists, and `systemd-analyze verify` finds nothing wrong where it is installed."""
    out, said = emitted(home, "systemd", "--cron", "30 2 * * 1-5", "--tz", "Europe/Berlin", "--out", "units")
    timer, service = (home.folder / line for line in out.splitlines())
    assert "OnCalendar=Mon,Tue,Wed,Thu,Fri *-*-* 02:30:00 Europe/Berlin" in timer.read_text()
    assert f"audit {home.folder}/fleet.yaml --history {home.folder}/audits/fleet --overlap skip" in service.read_text()
    assert "has to hold BULK_TOKEN, CHAT" in said
    assert len(re.findall(r"T02:30\+0[12]:00", said)) == 5
    if shutil.which("systemd-analyze"):
        service.write_text(re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", service.read_text()))
        done = subprocess.run(
            ["systemd-analyze", "verify", str(timer), str(service)], capture_output=True, text=True, check=False
        )
        assert "fleet" not in done.stderr, done.stderr


@pytest.mark.parametrize(("form", "before"), [("systemd", "ExecStart="), ("cron", "&& ")])
def test_what_is_started_can_be_started(home, form, before):
    """Bulk may have been started as a module, and then has no program of its own."""
    out, _ = emitted(home, form, "--cron", "30 2 * * *")
    program = shlex.split(out.partition(before)[2].partition(" audit ")[0])
    assert Path(program[0]).is_absolute()
    with home.start_any([*program, "--version"]) as process:
        assert process.communicate()[0].startswith("bulk ")


def test_an_audit_that_would_be_refused_gets_no_schedule(home):
    """A manifest that writes would end with 2 night after night."""
    home.manifest(
        "https://code.example.com/api/v3",
        {"new": {"operation": "organization.create", "items": [{"login": "a", "admin": "b"}]}},
        "writes.yaml",
    )
    ran = home.run("schedule", "writes.yaml", "--cron", "30 2 * * *", "--emit", "cron")
    assert (ran.exit_code, ran.out) == (2, "")
    assert "an audit only reads, and writes.yaml writes in new" in ran.err


def test_kubernetes_takes_the_job(home):
    """It keeps to the schema of a CronJob, passes its zone on, and never starts beside itself."""
    out, said = emitted(
        home, "kubernetes", "--cron", "30 2 * * *", "--tz", "Europe/Berlin", "--image", "x.example.com/b:1"
    )
    job = YAML(typ="safe").load(out)
    plain = json.loads(json.dumps(job))
    kubernetes_validate.validate(plain, kubernetes_validate.latest_version(), strict=True)
    assert (job["spec"]["timeZone"], job["spec"]["concurrencyPolicy"]) == ("Europe/Berlin", "Forbid")
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][:2] == ["audit", "/srv/bulk/audit/fleet.yaml"]
    (history,) = [after for before, after in pairwise(container["args"]) if before == "--history"]
    assert (history, "--cache=/srv/bulk/audits/cache" in container["args"]) == ("/srv/bulk/audits/fleet", True)
    assert [each["name"] for each in container["env"]] == ["BULK_TOKEN", "CHAT"]
    assert "leaves the time out on 20" in said
    assert "comes twice on 20" in said
    _, said = emitted(
        home, "kubernetes", "--cron", "30 4 * * *", "--tz", "Europe/Berlin", "--image", "x.example.com/b:1"
    )
    assert "the time" not in said


@pytest.mark.parametrize("form", ["systemd", "cron", "kubernetes", "actions"])
def test_every_form_passes_the_cache_on(home, form):
    """What reads are remembered in is where the options say, once; a path is seen from the folder of this command."""
    for options, says in ((["--cache", "kept"], f"--cache={home.folder}/kept"), (["--no-cache"], "--no-cache")):
        out, _ = emitted(home, form, "--cron", "30 2 * * *", *options)
        assert (says in out, out.count("-cache")) == (True, 1), out


def test_a_folder_that_can_not_be_written_is_a_wrong_option(home):
    """It is exit 2, as of every option that names what comes out."""
    ran = home.run("schedule", "fleet.yaml", "--emit", "cron", "--cron", "30 2 * * *", "--out", "/proc/units")
    assert (ran.exit_code, "--out /proc/units: can't be written: " in ran.err) == (2, True), ran.err


def test_cron_and_actions_say_what_they_lack(home):
    """A crontab escapes percent signs; a workflow is in UTC, never at the full hour, and reads its secrets."""
    out, said = emitted(home, "cron", "--cron", "30 2 * * *", "--tz", "Europe/Berlin", "--job", "hooks")
    zone, line = out.splitlines()[1:3]
    assert (zone, line.startswith("30 2 * * * cd "), "--job=hooks" in line) == ("CRON_TZ=Europe/Berlin", True, True)
    assert "does not catch up" in said
    assert "leaves the time out on 20" in said
    out, said = emitted(home, "actions", "--cron", "0 2 * * *", "--tz", "Europe/Berlin")
    workflow = YAML(typ="safe").load(out)
    minute, hour = workflow["on"]["schedule"][0]["cron"].split()[:2]
    assert (hour, 0 < int(minute) < 60) == ("1", True)
    assert workflow["jobs"]["audit"]["steps"][-1]["env"]["CHAT"] == "${{ secrets.CHAT }}"
    assert "this is the time of Europe/Berlin in January, and else 60 minutes later" in said


@pytest.mark.parametrize(
    ("zone", "hour", "else_"),
    [
        ("Asia/Tokyo", "17", ""),
        ("Australia/Sydney", "15", "60 minutes earlier"),
        ("Australia/Lord_Howe", "15", "30 minutes earlier"),
        ("Africa/Casablanca", "1", "60 minutes earlier"),
        ("Antarctica/Troll", "2", "120 minutes later"),
    ],
)
@pytest.mark.parametrize("month", [1, 7, 12])
def test_a_workflow_says_by_how_much_its_time_moves(zone, hour, else_, month):
    """South of the equator January is summer, some clocks change by half an hour, and many never do."""
    found = emit("actions", times_of("30 2 * * *", zone), AUDITED, datetime(2027, month, 1, tzinfo=UTC))
    (workflow,) = found.files.values()
    assert f'cron: "30 {hour} * * *"' in workflow
    assert [text.partition("and else ")[2] for text in found.warnings[1:]] == ([else_] if else_ else [])


def test_a_workflow_refuses_days_that_are_others_in_summer():
    """In summer 23:30 UTC is the next day in London."""
    with pytest.raises(UsageError, match="another day in UTC"):
        emit("actions", times_of("30 23 * * 1-5", "Europe/London"), AUDITED, datetime(2027, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("cron", "zone", "says"),
    [
        ("30 2 * *", "UTC", "expected five fields"),
        ("30 25 * * *", "UTC", "bad hour"),
        ("0 0 L * *", "UTC", "not known to every scheduler"),
        ("30 2 * * *", "Europe/Berln", "did you mean Europe/Berlin"),
        ("30 2 * * *", "europe/berlin", "did you mean Europe/Berlin"),
        ("30 2 * * *", "localtime", "unknown time zone"),
        ("5/15 2 * * *", "UTC", "5/15: a step of one value is not known to every scheduler"),
        ("0 2 1,3/2 * *", "UTC", "3/2: a step of one value"),
        ("0 2 */2 * 1", "UTC", "some schedulers want both"),
        ("0 2 1 * */2", "UTC", "some schedulers want both"),
    ],
)
def test_what_is_no_time_is_told(cron, zone, says):
    """The message names the option and what was expected."""
    with pytest.raises(UsageError, match=re.escape(says)):
        times_of(cron, zone)


def test_what_only_this_shell_knows_is_passed_on(home, monkeypatch):
    """The scheduler's environment has none of it: the platform's address, options, variables of Apps and pools."""
    monkeypatch.setenv("BULK_VENDOR", "github")
    (home.folder / "credentials.yaml").write_text(
        "ours: {app: {client_id: Iv1, private_key: env:APP_KEY}}\nmine: env:MINE\nboth: {pool: [mine, default]}\n"
    )
    jobs = {
        "hooks": {"operation": "webhook.list", "credential": "ours", "items": [{"org": "acme"}]},
        "rules": {"operation": "organization-ruleset.list", "credential": "both", "items": [{"org": "acme"}]},
    }
    home.manifest("https://code.example.com/api/v3", jobs, "apps.yaml")
    options = ("--credentials", "credentials.yaml", "--base-url", "https://other.example.com/api/v3", "--reserve", "5%")
    ran = home.run("schedule", "apps.yaml", "--emit", "systemd", "--cron", "30 2 * * *", *options)
    assert ran.exit_code == 0, ran.err
    for option in (
        "--base-url=https://other.example.com/api/v3", "--vendor=github", '"--reserve=5%%"',
        "--credentials=credentials.yaml",
    ):  # fmt: skip
        assert f" {option}" in ran.out
    assert "has to hold APP_KEY, MINE, BULK_TOKEN" in ran.err


def test_two_audits_never_share_a_unit():
    """What they would share is a timer, a claim and the variables; names that differ in a dot or a capital do not."""
    names = [
        "fleet",
        "fleet-eu",
        "fleet.eu",
        "fleet_eu",
        "Fleet-eu",
        "fleet-eu-",
        *(f"{'x' * 60}{end}" for end in "ab"),
    ]
    units = [replace(AUDITED, name=name).unit for name in names]
    assert units[:2] == ["bulk-audit-fleet", "bulk-audit-fleet-eu"]
    assert len(set(units)) == len(names)
    assert all(re.fullmatch("[a-z0-9-]{1,51}[a-z0-9]", unit) for unit in units)


@pytest.mark.parametrize("form", ["systemd", "cron"])
@pytest.mark.parametrize("where", ["folder", "manifest", "history", "options"])
@pytest.mark.parametrize("letter", ["\n", "\r", "\x7f", "\udcff"])
def test_no_path_or_option_ends_a_line(form, where, letter):
    """The rest of it would be a line of its own in a crontab or a unit."""
    odd = f"/srv/a{letter}b"
    given = {"options": (f"--var=x={odd}",)} if where == "options" else {where: Path(odd)}
    times, now = times_of("30 2 * * *", "UTC"), datetime(2027, 2, 20, 12, tzinfo=UTC)
    with pytest.raises(UsageError, match=f"--emit {form}: .* holds a character that no line of it can have; rename it"):
        emit(form, times, replace(AUDITED, **given), now)


def test_no_path_is_an_expression_of_actions():
    """Actions would put the value of what stands in `${{ }}` in its place; a shell gets the path as it is."""
    audited = replace(AUDITED, manifest=Path("/srv/a ${{ github.actor }} '${{{b.yaml"), options=("--var=x=$${{1}}",))
    times, now = times_of("30 2 * * *", "UTC"), datetime(2027, 2, 20, 12, tzinfo=UTC)
    (workflow,) = emit("actions", times, audited, now).files.values()
    (command,) = (step["run"] for step in YAML(typ="safe").load(workflow)["jobs"]["audit"]["steps"][3:])
    assert "${{" not in command
    words = subprocess.run(["sh", "-c", f"printf '%s\\n' {command}"], capture_output=True, text=True, check=True).stdout
    assert words.splitlines() == audited.command(["bulk"], audited.manifest.name, "audits")
