"""Why something could not be shown, sorted by whether trying again can help."""

import ssl
from typing import Final

import httpx


class SmokeError(Exception):
    """One line for the user: the cause, and the fix; shown without a traceback."""

    def __init__(self, cause: str, fix: str) -> None:
        self.cause = cause
        self.fix = fix
        super().__init__(f"{cause}; {fix}")


class TemporaryError(SmokeError):
    """Trying again may succeed: a start, a rollout, a quota that refills."""


class PermanentError(SmokeError):
    """Trying again changes nothing: somebody has to act."""


_STATUS: Final[dict[int, tuple[type[SmokeError], str, str]]] = {
    400: (PermanentError, "the request was refused as malformed", "compare the model's engine version with the probe's request"),
    401: (
        PermanentError,
        "the key is missing, malformed, expired or disabled, or its stored value carries its own 'Bearer '",
        "store the bare value of a valid key, then run pulumi up",
    ),
    403: (PermanentError, "the key may not use this model", "allow the model for this key under moonstack:keys"),
    404: (
        PermanentError,
        "no such model or path: the model's name differs in case, hyphens or version",
        "use a name that /v1/models lists, letter by letter",
    ),
    413: (PermanentError, "the request is larger than gateway.maxBodyBytes", "raise moonstack:gateway.maxBodyBytes"),
    429: (TemporaryError, "a rate limit is exhausted", "wait, or raise the key's qps or channel.ratelimit"),
    500: (TemporaryError, "the router or the engine broke while answering", "read the engine's log: kubectl logs deploy/…"),
    502: (TemporaryError, "the gateway's backend broke, or the external channel refused our key", "run python -m smoke doctor"),
    503: (
        TemporaryError,
        "no worker is available: the router knows no Ready prefill or no Ready decode pod",
        "run python -m smoke doctor; look at pods that are not Ready",
    ),
    504: (TemporaryError, "the backend did not answer in time", "run python -m smoke pulse to see queue and TTFT"),
}  # fmt: skip


def from_status(status: int, message: str, what: str) -> SmokeError:
    """The error for an answer that should have been 200; `message` is the body's own error message."""
    kind, cause, fix = _STATUS.get(
        status,
        (PermanentError, "the answer has a status that the gateway never gives", "see what listens at the endpoint"),
    )
    said = f" (it says: {message})" if message else ""
    return kind(f"{what} answered {status}: {cause}{said}", fix)


def from_transport(error: httpx.HTTPError, url: str) -> SmokeError:
    """The error for a request that got no answer at all."""
    reason = f"{type(error).__name__}: {error}".rstrip(": ")
    if _certificate_problem(error):
        return PermanentError(
            f"the certificate of {url} is not trusted: {reason}",
            "make gateway.tls.hosts name this host, and trust the CA that signed it (SSL_CERT_FILE)",
        )
    if isinstance(error, httpx.TimeoutException):
        return TemporaryError(
            f"{url} did not answer in time: {reason}", "check the endpoint, egress policy and the pods' state"
        )
    if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL):
        return PermanentError(f"{url} is not a usable address: {reason}", "correct moonstack:smoke.endpoint")
    return TemporaryError(
        f"{url} is not reachable: {reason}", "check smoke.endpoint, the proxy variables, egress on this port, and DNS"
    )


def _certificate_problem(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
