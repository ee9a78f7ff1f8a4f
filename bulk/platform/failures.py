"""Makes a `Failure` of an exception of aiohttp: what is known about the request, and words for people.

Whether a byte may have left is known from the flight, never from the kind of exception: before the request is written,
every failure is NOT_SENT, afterwards every one is LOST. Messages are Bulk's own, as those of aiohttp may hold URLs and
headers.
Source: operations.md, Outcome classes; failures.md rows 1-4, 6, 28, 51.
"""

import errno
import os
import ssl

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from bulk.model import ErrorCode, Failure, FailureKind
from bulk.platform.deadlines import FIRST_CONNECTION_S
from bulk.platform.response_heads import bad_head_of
from bulk.redaction.printable import printable

FOREIGN = (aiohttp.ClientError, HttpProcessingError, OSError, TimeoutError, UnicodeError)
"""Everything that aiohttp lets out when the network or the peer is to blame."""

TOO_MANY_FILES = frozenset((errno.EMFILE, errno.ENFILE))

_MEND = {
    # numbers of OpenSSL's X509_V_ERR_*
    10: "it has expired: renew it, or set this machine's clock right",
    9: "it is not valid yet: set this machine's clock right",
    62: "it is for another name: is platform.base_url right?",
    64: "it is for another address: is platform.base_url right?",
}
_UNKNOWN_AUTHORITY = "set platform.ca_bundle to the file (PEM) of the authority that signed it"


class ResendRefused(aiohttp.ClientConnectionError):
    """aiohttp tried by itself to send a request a second time, which must never happen."""


class PermitRevoked(aiohttp.ClientConnectionError):
    """The leave to send was taken back while a connection was made: nothing was sent on it."""


class ConnectionStale(aiohttp.ClientConnectionError):
    """The connection from the pool was already closing, or held bytes that nobody asked for: nothing was sent on it."""


def failure_of(error: BaseException, *, is_written: bool, is_overdue: bool, timeout_s: float, place: str) -> Failure:
    """Return what `error` means for the request.

    Args:
        is_written: bytes of the request may have left.
        is_overdue: the request was given up after `timeout_s` (seconds).
        place: host and port, for people.
    """
    kind = FailureKind.LOST if is_written else FailureKind.NOT_SENT
    if is_overdue:
        what = "answer from" if is_written else "connection to"
        return Failure(kind=kind, code=ErrorCode.TIMEOUT, message=f"no {what} {place} within {timeout_s:g} s")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        message = f"the certificate of {place} is not trusted{_flaw_and_cure(error.certificate_error)}"
        return Failure(kind=kind, code=ErrorCode.CONNECTION, message=message, is_certificate=True)
    bad = bad_head_of(error)
    if bad is not None and not is_written:
        return Failure(kind=kind, code=ErrorCode.CONNECTION, message=f"what the proxy answered {bad.why}")
    if isinstance(error, aiohttp.ClientResponseError | HttpProcessingError) and is_written:
        message = f"what {place} answered {bad.why if bad is not None else 'is not valid HTTP'}"
        is_answer = bad is not None and bad.is_http
        return Failure(kind=kind, code=ErrorCode.BAD_RESPONSE, message=message, is_answer=is_answer)
    if isinstance(error, aiohttp.ClientResponseError):
        # the only answer that comes before the request is written is a proxy's
        return Failure(kind=kind, code=ErrorCode.CONNECTION, message=f"the proxy refused (status {error.status})")
    return Failure(kind=kind, code=ErrorCode.CONNECTION, message=_words(error, is_written=is_written, place=place))


def _flaw_and_cure(error: Exception) -> str:
    if not isinstance(error, ssl.SSLCertVerificationError):
        return f": {_UNKNOWN_AUTHORITY}"
    return f" ({printable(error.verify_message, 120)}): {_MEND.get(error.verify_code, _UNKNOWN_AUTHORITY)}"


def _words(error: BaseException, *, is_written: bool, place: str) -> str:
    match error:
        case ResendRefused():
            return f"the connection to {place} was lost, and sending the request again was refused"
        case _ if is_written:
            return f"the connection to {place} was lost before an answer came{_because(error)}"
        case TimeoutError():
            return f"no connection to {place} within {FIRST_CONNECTION_S:g} s"
        case PermitRevoked():
            return "held back before it left"
        case ConnectionStale():
            return f"the connection to {place} closed before anything was sent"
        case OSError() if error.errno in TOO_MANY_FILES:
            return "too many open files: lower limits.concurrency, or raise the limit (ulimit -n)"
        case aiohttp.ClientConnectorDNSError():
            return f"the name of {place} can't be resolved{_because(error)}"
        case aiohttp.ClientProxyConnectionError():
            return f"the proxy can't be reached{_because(error)}"
        case aiohttp.ClientConnectorSSLError():
            return f"no TLS with {place}{_because(error)}: does platform.base_url have the right scheme and port?"
        case _:
            return f"can't connect to {place}{_because(error)}"


def _because(error: BaseException) -> str:
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(inner, ssl.SSLError) and inner.reason:
        return f" ({printable(inner.reason, 120).replace('_', ' ').lower()})"
    if isinstance(inner, OSError) and inner.errno is not None and inner.errno > 0:
        return f" ({os.strerror(inner.errno)})"  # the error's own text may name the address once more
    reason = inner.strerror if isinstance(inner, OSError) else None
    return f" ({printable(str(reason), 120)})" if reason else ""
