"""Which verdict each answer gets: a table of what platforms say, and properties of everything else."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bulk.model import Effect, ErrorCode, Media, Reply, Request
from bulk.platform.auth.secrets import Secret
from bulk.platform.bodies.body_values import Unreadable
from bulk.platform.classification import MESSAGE_CHARS, Verdict, VerdictKind, classify
from bulk.proof import Proof

READ = Request(method="GET", path="/x")
WRITE = Request(method="PUT", path="/x", effect=Effect.SET, accept=frozenset((200, 201)))
DOCS = {"documentation_url": "https://docs.example.com/rest"}
K, C = VerdictKind, ErrorCode


def verdict(status: int, body: object = None, request: Request = WRITE, **headers: str) -> Verdict:
    """The verdict on such a reply; `retry_after` stands for Retry-After."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return classify(request, Reply(status=status, headers=named, body=body), "service")


def says(message: str, **more: object) -> dict[str, object]:
    """An error body."""
    return {"message": message, **DOCS, **more}


TABLE = [
    # what the operation wants to see
    (200, {"a": 1}, {}, K.ACCEPTED, None),
    (201, {"a": 1}, {}, K.ACCEPTED, None),
    # refusals
    (400, says("Problems parsing JSON"), {}, K.REFUSED, C.VALIDATION_FAILED),
    (404, says("Not Found"), {}, K.REFUSED, C.NOT_FOUND),
    (409, says("README.md does not match abc"), {}, K.REFUSED, C.CONFLICT),
    (409, says("Another write to the same resource is in progress"), {}, K.REFUSED, C.CONFLICT),
    (410, says("Gone"), {}, K.REFUSED, C.VALIDATION_FAILED),
    (412, None, {}, K.REFUSED, C.CONFLICT),
    (413, None, {}, K.REFUSED, C.TOO_LARGE),
    (415, None, {}, K.REFUSED, C.VALIDATION_FAILED),
    (423, None, {}, K.REFUSED, C.CONFLICT),
    (422, says("Validation Failed", errors=[{"code": "custom"}]), {}, K.REFUSED, C.VALIDATION_FAILED),
    (422, None, {}, K.REFUSED, C.VALIDATION_FAILED),
    (422, says("Blob too big", errors=[{"code": "too_large"}]), {}, K.REFUSED, C.TOO_LARGE),
    (422, says('Invalid request.\n\n"sha" wasn\'t supplied.'), {}, K.REFUSED, C.VALIDATION_FAILED),
    # 422 that passes (failures.md row 23)
    (422, says("Enablement is already in progress"), {}, K.BUSY, C.VALIDATION_FAILED),
    (422, says("Validation Failed", errors=["a rename is in progress"]), {}, K.BUSY, C.VALIDATION_FAILED),
    (422, says("Validation failed, or the endpoint has been spammed."), {}, K.BUSY, C.VALIDATION_FAILED),
    (422, says("spammed", errors=[{"field": "x", "code": "invalid"}]), {}, K.REFUSED, C.VALIDATION_FAILED),
    # credentials
    (401, says("Bad credentials"), {}, K.UNAUTHORIZED, C.UNAUTHORIZED),
    (401, None, {}, K.UNAUTHORIZED, C.UNAUTHORIZED),
    (403, says("Maximum number of login attempts exceeded. Please try again later."), {}, K.LOCKED_OUT, C.UNAUTHORIZED),
    (403, says("Too many invalid credentials"), {"retry_after": "60"}, K.LOCKED_OUT, C.UNAUTHORIZED),
    # 403 explained (failures.md row 20)
    (403, says("Resource not accessible by this token"), {}, K.REFUSED, C.FORBIDDEN),
    (403, {"message": "Must have admin rights to Repository."}, {}, K.REFUSED, C.FORBIDDEN),
    (403, says("Forbidden"), {}, K.REFUSED, C.FORBIDDEN),
    (403, says("too big", errors=[{"code": "too_large"}]), {}, K.REFUSED, C.TOO_LARGE),
    (451, says("Repository access blocked"), {}, K.REFUSED, C.FORBIDDEN),
    (403, says("no", errors=[]), {"x_ratelimit_remaining": "4000"}, K.REFUSED, C.FORBIDDEN),
    # 403 unexplained
    (403, None, {}, K.UNEXPLAINED, C.FORBIDDEN),
    (403, {}, {}, K.UNEXPLAINED, C.FORBIDDEN),
    (403, {"message": "Forbidden"}, {}, K.UNEXPLAINED, C.FORBIDDEN),
    (403, {"message": " 403: FORBIDDEN! "}, {}, K.UNEXPLAINED, C.FORBIDDEN),
    (403, {"message": ""}, {}, K.UNEXPLAINED, C.FORBIDDEN),
    (403, {"message": "403"}, {}, K.UNEXPLAINED, C.FORBIDDEN),
    (403, {"message": "Error 403"}, {}, K.UNEXPLAINED, C.FORBIDDEN),
    (403, {"message": "Denied."}, {}, K.UNEXPLAINED, C.FORBIDDEN),
    (403, {"message": "Access denied"}, {}, K.UNEXPLAINED, C.FORBIDDEN),
    (403, {"message": "error"}, {}, K.UNEXPLAINED, C.FORBIDDEN),
    (403, {"message": "Not allowed!"}, {}, K.UNEXPLAINED, C.FORBIDDEN),
    (403, DOCS, {}, K.UNEXPLAINED, C.FORBIDDEN),
    (403, ["Forbidden"], {}, K.UNEXPLAINED, C.FORBIDDEN),
    (403, {"message": 7}, {}, K.UNEXPLAINED, C.FORBIDDEN),
    # limits (failures.md row 19)
    (403, says("API rate limit exceeded for user ID 1."), {}, K.LIMITED_PRIMARY, C.RATE_LIMITED),
    (429, says("API rate limit exceeded"), {"retry_after": "9"}, K.LIMITED_PRIMARY, C.RATE_LIMITED),
    (403, says("whatever"), {"x_ratelimit_remaining": "0"}, K.LIMITED_PRIMARY, C.RATE_LIMITED),
    (403, says("whatever"), {"x_ratelimit_remaining": "1"}, K.REFUSED, C.FORBIDDEN),
    (403, None, {"x_ratelimit_remaining": "-1"}, K.LIMITED_PRIMARY, C.RATE_LIMITED),
    (429, None, {"x_ratelimit_remaining": "0"}, K.LIMITED_PRIMARY, C.RATE_LIMITED),
    (403, says("You have exceeded a secondary rate limit."), {}, K.LIMITED_SECONDARY, C.RATE_LIMITED),
    (403, says("Secondary rate"), {"x_ratelimit_remaining": "0"}, K.LIMITED_PRIMARY, C.RATE_LIMITED),
    (403, says("You have triggered an abuse detection mechanism."), {}, K.LIMITED_SECONDARY, C.RATE_LIMITED),
    (403, None, {"retry_after": "3"}, K.LIMITED_SECONDARY, C.RATE_LIMITED),
    # words alone, which may be names, limit nothing
    (403, says("Rate-limited, slow down"), {}, K.REFUSED, C.FORBIDDEN),
    (403, says("Repository access to acme/rate-limiter blocked"), {}, K.REFUSED, C.FORBIDDEN),
    (403, says("API rate limit exceeded for x: no such team"), {}, K.REFUSED, C.FORBIDDEN),
    (403, says("'You have exceeded a secondary rate limit' may not be read"), {}, K.REFUSED, C.FORBIDDEN),
    (403, says("The app 'too many failed login attempts exceeded' is not installed"), {}, K.REFUSED, C.FORBIDDEN),
    (422, says("Name 'work in progress' has been taken"), {}, K.REFUSED, C.VALIDATION_FAILED),
    (422, says("Branch in progress is protected"), {}, K.REFUSED, C.VALIDATION_FAILED),
    (429, says("Slow down"), {}, K.LIMITED_SECONDARY, C.RATE_LIMITED),
    (429, {}, {}, K.LIMITED_SECONDARY, C.RATE_LIMITED),
    (429, None, {"retry_after": "3"}, K.LIMITED_SECONDARY, C.RATE_LIMITED),
    (429, None, {"retry_after": "soon"}, K.LIMITED_SECONDARY, C.RATE_LIMITED),
    (429, None, {"x_ratelimit_remaining": "12"}, K.LIMITED_SECONDARY, C.RATE_LIMITED),
    # a front end says nothing
    (429, None, {}, K.THROTTLED, C.RATE_LIMITED),
    (429, "slow down", {}, K.THROTTLED, C.RATE_LIMITED),
    (429, says("Not now"), {"x_ratelimit_remaining": "12"}, K.LIMITED_SECONDARY, C.RATE_LIMITED),
    # the server suffers (failures.md rows 24 and 25)
    (503, None, {"retry_after": "3"}, K.BUSY, C.SERVER_ERROR),
    (503, None, {}, K.SERVER_ERROR, C.SERVER_ERROR),
    (500, says("Internal"), {}, K.SERVER_ERROR, C.SERVER_ERROR),
    (502, None, {"retry_after": "3"}, K.SERVER_ERROR, C.SERVER_ERROR),
    (504, None, {}, K.SERVER_ERROR, C.SERVER_ERROR),
    (599, None, {}, K.SERVER_ERROR, C.SERVER_ERROR),
    # whoever gave up does not know what became of the request
    (408, None, {}, K.SERVER_ERROR, C.SERVER_ERROR),
    (421, None, {}, K.SERVER_ERROR, C.SERVER_ERROR),
    (425, None, {}, K.SERVER_ERROR, C.SERVER_ERROR),
    (499, None, {}, K.SERVER_ERROR, C.SERVER_ERROR),
    (520, None, {}, K.SERVER_ERROR, C.SERVER_ERROR),
    # what makes no sense
    (202, {"message": "queued"}, {}, K.BAD_RESPONSE, C.BAD_RESPONSE),
    (204, None, {}, K.BAD_RESPONSE, C.BAD_RESPONSE),
    (304, None, {}, K.BAD_RESPONSE, C.BAD_RESPONSE),
    (300, None, {"location": "/x"}, K.BAD_RESPONSE, C.BAD_RESPONSE),
    (307, None, {"location": "/x"}, K.BAD_RESPONSE, C.BAD_RESPONSE),
    (101, None, {}, K.BAD_RESPONSE, C.BAD_RESPONSE),
    (600, None, {}, K.BAD_RESPONSE, C.BAD_RESPONSE),
    (999, None, {}, K.BAD_RESPONSE, C.BAD_RESPONSE),
]


@pytest.mark.parametrize(("status", "body", "headers", "kind", "code"), TABLE)
def test_every_kind_of_answer_has_its_verdict(status, body, headers, kind, code):
    """failures.md rows 18, 19, 20, 23, 24, 25: what the platform says decides, as the table has it."""
    got = verdict(status, body, **headers)
    assert (got.kind, got.code) == (kind, code)
    assert bool(got.message) == (kind is not K.ACCEPTED)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_read_is_redirected_and_a_write_is_not(status):
    """failures.md rows 9 and 11: a redirect of a read says where to; of a write it is an answer that can't be used."""
    assert verdict(status, request=READ, location="/y") == Verdict(K.REDIRECTED, location="/y")
    assert verdict(status, request=READ).kind is K.BAD_RESPONSE
    assert verdict(status, request=READ).message.endswith(f"(status {status}), without saying where to")
    refused = verdict(status, location="/y")
    assert (refused.kind, refused.code) == (K.BAD_RESPONSE, C.BAD_RESPONSE)
    assert "a write is never sent elsewhere; if it was renamed or moved" in refused.message
    assert "redirects" not in verdict(306, request=READ).message
    accepting = Request(method="GET", path="/x", accept=frozenset((200, 302)))
    assert (verdict(status, request=accepting, location="/y").kind is K.ACCEPTED) == (status == 302)


def test_limits_come_before_what_an_operation_accepts():
    """An operation that wants to see 403 and 422 is not shown a limit, an unexplained refusal or a busy platform."""
    greedy = Request(method="GET", path="/x", accept=frozenset((200, 401, 403, 404, 409, 422, 429, 503)))
    kinds = {
        K.UNAUTHORIZED: verdict(401, None, greedy),
        K.LOCKED_OUT: verdict(403, says("Too many login attempts."), greedy),
        K.LIMITED_PRIMARY: verdict(403, says("API rate limit exceeded"), greedy),
        K.LIMITED_SECONDARY: verdict(429, says("Slow down"), greedy),
        K.THROTTLED: verdict(429, None, greedy),
        K.UNEXPLAINED: verdict(403, None, greedy),
        K.BUSY: verdict(422, says("Another rename is in progress"), greedy),
    }
    assert {kind: got.kind for kind, got in kinds.items()} == {kind: kind for kind in kinds}
    seen = ((403, says("Must be an owner")), (404, says("No")), (409, None), (422, says("exists")), (503, None))
    for status, body in seen:
        assert verdict(status, body, greedy).kind is K.ACCEPTED


@pytest.mark.parametrize(
    ("request_", "reply", "kind", "code"),
    [
        (READ, Reply(status=200, headers={}, body=None), K.BAD_RESPONSE, C.BAD_RESPONSE),
        (WRITE, Reply(status=200, headers={}, body=None), K.ACCEPTED, None),
        (WRITE, Reply(status=201, headers={}, body=None), K.ACCEPTED, None),
        (READ, Reply(status=200, headers={}, is_truncated=True), K.BAD_RESPONSE, C.BAD_RESPONSE),
        (WRITE, Reply(status=201, headers={}, is_truncated=True), K.BAD_RESPONSE, C.BAD_RESPONSE),
        (READ, Reply(status=200, headers={}, body=Unreadable("it is not valid JSON")), K.BAD_RESPONSE, C.BAD_RESPONSE),
        (WRITE, Reply(status=201, headers={}, body=Unreadable("it is not UTF-8")), K.BAD_RESPONSE, C.BAD_RESPONSE),
        (READ, Reply(status=200, headers={}, body=Unreadable("long", is_too_large=True)), K.REFUSED, C.BAD_RESPONSE),
        (
            WRITE,
            Reply(status=200, headers={}, body=Unreadable("long", is_too_large=True)),
            K.BAD_RESPONSE,
            C.BAD_RESPONSE,
        ),
        (
            Request(method="GET", path="/x", media=Media.RAW),
            Reply(status=200, headers={}, body=Unreadable("long", is_too_large=True)),
            K.REFUSED,
            C.TOO_LARGE,
        ),
        (Request(method="GET", path="/x", media=Media.RAW), Reply(status=200, headers={}, body=b""), K.ACCEPTED, None),
        (
            Request(method="GET", path="/x", accept=frozenset((300,))),
            Reply(status=300, headers={}, is_truncated=True),
            K.ACCEPTED,
            None,
        ),
        (READ, Reply(status=404, headers={}, is_truncated=True), K.ASTRAY, C.NOT_FOUND),
        (READ, Reply(status=409, headers={}, is_truncated=True), K.REFUSED, C.CONFLICT),
        (READ, Reply(status=403, headers={}, is_truncated=True), K.UNEXPLAINED, C.FORBIDDEN),
    ],
)
def test_a_body_that_cant_be_used_is_no_success(request_, reply, kind, code):
    """failures.md rows 5, 15, 26, 29: a broken, empty, unreadable or too long body of a success is told by its kind."""
    got = classify(request_, reply, "service")
    assert (got.kind, got.code) == (kind, code)


names = st.sampled_from(
    [
        "rate limit",
        "secondary rate limit",
        "API rate limit exceeded",
        "work in progress",
        "already in progress",
        "too many requests",
        "login attempts exceeded",
        "spammed",
        "abuse-detection",
        "quota",
        "being processed",
    ]
) | st.text(st.characters(categories=("L", "N", "Zs", "Pd")), min_size=1, max_size=20)
templates = st.sampled_from(
    [
        "Repository access to {} blocked",
        "Team '{}' may not be seen",
        "{}: not found",
        "Resource {} is protected",
        "You may not rename {} to {}",
        'Ruleset "{}" exists already',
        "{} must have admin rights",
        "No {} here.",
    ]
)


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({}, "the answer (status 200) broke off"),
        ({"content-encoding": "zstd"}, "the answer (status 200) broke off, or its bytes are not in the coding (zstd)"),
    ],
)
def test_a_body_in_another_coding_is_told_from_one_that_broke_off(headers, told):
    """A person reads which coding a gateway names: nothing was offered but gzip and deflate."""
    assert classify(READ, Reply(status=200, headers=headers, is_truncated=True), "service").message == told


@given(template=templates, name=names, status=st.sampled_from([403, 404, 409, 422]))
def test_names_in_a_message_change_nothing(template, name, status):
    """A refusal that quotes a name is a refusal, whatever that name is: nothing pauses, nothing is sent again."""
    assert verdict(status, {"message": template.format(name, name)}).kind is K.REFUSED
    in_errors = {"message": "Validation Failed", "errors": [{"message": template.format(name, name)}, {"field": name}]}
    assert verdict(status, in_errors).kind is K.REFUSED


def test_a_proof_decides_whether_a_success_is_one():
    """A success without what was asked for is a bad answer, and so is one that the proof can't understand."""
    asked = Request(method="GET", path="/x", proof=Proof(lambda reply: "" if "id" in reply.body else "it names no id"))
    assert verdict(200, {"id": 1}, asked).kind is K.ACCEPTED
    got = verdict(200, {"status": "ok"}, asked)
    assert (got.kind, got.code) == (K.BAD_RESPONSE, C.BAD_RESPONSE)
    assert "it names no id" in got.message
    assert verdict(200, 7, asked).kind is K.BAD_RESPONSE
    assert classify(asked, Reply(status=200, headers={}, body={}, is_unchanged=True), "service").kind is K.ACCEPTED


def test_the_entries_of_a_422_are_readable():
    """A person reads field and reason of each entry, in the platform's own words."""
    errors = [
        {"resource": "Hook", "field": "config.url", "code": "missing_field"},
        {"resource": "Hook", "code": "custom", "message": "Hook already exists on this organization"},
        {"field": "name", "code": "invalid", "message": "name is too short"},
        "a plain sentence",
        {"resource": 7, "field": ["x"], "message": 7, "code": "invalid"},
        {"value": 1},
        7,
        None,
    ]
    assert verdict(422, says("Validation Failed", errors=errors)).message == (
        "Validation Failed: Hook.config.url: missing_field; Hook: Hook already exists on this organization;"
        " name: name is too short; a plain sentence; invalid"
    )
    many = [{"field": f"f{number}", "code": "invalid"} for number in range(30)]
    assert verdict(422, says("No", errors=many)).message.endswith("f9: invalid; and 20 more")
    assert verdict(422, says("No", errors=many[:10])).message.endswith("f9: invalid")
    assert verdict(422, says("No", errors=[{}] * 100 + many)).message == "No"
    for alone in ("No organization nope", {"message": "No organization nope"}):
        assert verdict(422, says("No", errors=alone)).message == "No: No organization nope"


def test_a_message_is_cut_only_where_it_is_too_long():
    """The longest that is shown is shown whole; of one that hides most of itself nothing is."""
    assert verdict(422, says("y" * MESSAGE_CHARS)).message == "y" * MESSAGE_CHARS
    assert verdict(422, says("y" * (MESSAGE_CHARS + 1))).message == "y" * (MESSAGE_CHARS - 1) + "…"
    assert verdict(422, says("y" * MESSAGE_CHARS + "\u200b" * 20_000)).message.endswith("no message")


def test_messages_hold_no_secret_and_no_control_characters():
    """failures.md rows 63 and 66: what a platform late writes is cleaned before anyone sees it, hidden secrets too."""
    token = Secret("tok_echoed_by_platform")
    hidden = "\u200b".join(token.reveal())
    late_write = f"\x1b[31mBad token {token.reveal()}\x07\n\u202e{hidden}"
    assert verdict(401, says(late_write)).message == "Bad token *** ***"
    long = verdict(422, says("y" * 10_000))
    assert len(long.message) == MESSAGE_CHARS
    assert verdict(403, says("a " * 490 + token.reveal())).message.endswith("…")
    # a token that is cut where reading ends comes into sight when what stands before it is dropped
    for filler in range(19_980, 20_001):
        hiding = "\u200b" * filler + token.reveal()
        assert "tok_" not in verdict(422, says(hiding)).message
        assert "tok_" not in verdict(422, says("", errors=[hiding])).message


def test_a_wait_is_measured_on_the_clock_that_asked_for_it():
    """A Retry-After with a date counts from the answer's own Date; without one it is unknown, and seconds need none."""
    date, later = "Sat, 21 Nov 2026 08:00:00 GMT", "Sat, 21 Nov 2026 08:00:30 GMT"
    assert verdict(503, retry_after=later, date=date).retry_after_s == 30.0
    assert verdict(503, retry_after=later).retry_after_s is None
    assert verdict(429, retry_after="7").retry_after_s == 7.0
    assert verdict(404).retry_after_s is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
header_names = st.sampled_from(
    ["retry-after", "date", "location", "link", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]
)
header_values = st.text(max_size=40) | st.integers().map(str) | st.floats().map(str)
error_bodies = st.fixed_dictionaries(
    {},
    optional={"message": json_values, "errors": json_values | st.lists(json_values), "documentation_url": json_values},
)
requests = st.builds(
    Request,
    method=st.sampled_from(["GET", "PUT", "POST", "DELETE"]),
    path=st.just("/x"),
    effect=st.sampled_from(Effect),
    media=st.sampled_from(Media),
    accept=st.frozensets(st.sampled_from([200, 201, 202, 204, 302, 304, 403, 404, 409, 422, 500]), max_size=4),
)


@given(
    request_=requests,
    status=st.integers(0, 999),
    headers=st.dictionaries(header_names, header_values),
    body=json_values | error_bodies | st.binary() | st.builds(Unreadable, st.text()),
    is_truncated=st.booleans(),
)
@example(READ, 429, {"retry-after": "9" * 400}, None, False)
@example(READ, 403, {}, {"message": " " * 5000 + "x"}, False)
@example(READ, 200, {}, Unreadable("\ud7fc"), False)
def test_a_verdict_can_be_had_for_everything(request_, status, headers, body, is_truncated):
    """failures.md row 26: no headers and no body make it raise; waits and messages stay within bounds."""
    reply = Reply(status=status, headers=headers, body=body, is_truncated=is_truncated)
    got = classify(request_, reply, "service")
    assert got.retry_after_s is None or 0.0 <= got.retry_after_s <= 3_700.0
    assert len(got.message) <= MESSAGE_CHARS
    assert got.message.isprintable() or "\u200c" in got.message or "\u200d" in got.message
    assert (got.kind is K.ACCEPTED) <= (status in request_.accept)
    assert (got.location is not None) == (got.kind is K.REDIRECTED)
    assert (got.kind is K.REDIRECTED) <= (request_.effect is Effect.READ)
    assert (got.code is None) == (got.kind in (K.ACCEPTED, K.REDIRECTED))
    if status >= 500 and status < 600 and status not in request_.accept:
        assert got.kind in (K.SERVER_ERROR, K.BUSY)
    if got.kind is K.ACCEPTED and 200 <= status < 300:
        assert not is_truncated
        assert not isinstance(body, Unreadable)


@pytest.mark.parametrize(
    ("status", "message", "told", "shown"),
    [
        (403, "Resource not accessible", "contents=read", "Resource not accessible (it takes contents=read)"),
        (
            403,
            "Not yours",
            "contents=read,issues=write; pages=read",
            "Not yours (it takes contents=read,issues=write; pages=read)",
        ),
        (403, "Not yours", "<b>\x1b[1m", "Not yours"),
        (404, "Not Found", "contents=read", "Not Found"),
        (403, "API rate limit exceeded for user ID 1.", "contents=read", "API rate limit exceeded for user ID 1."),
    ],
)
def test_a_403_names_the_permission_that_it_takes(status: int, message: str, told: str, shown: str) -> None:
    """What `X-Accepted-GitHub-Permissions` says follows the message of a refusal, and of nothing else; text that is not
    a list of permissions is left out."""
    found = verdict(status, says(message), x_accepted_github_permissions=told)
    assert found.message == shown
