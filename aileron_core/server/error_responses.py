"""From an error to the one error body and its HTTP status, by the error's class."""

import logging
from collections.abc import Mapping

from starlette.responses import JSONResponse

from aileron_core.errors import AileronError, Failure, InternalError

STATUS: Mapping[str, int] = {
    "invalid_arguments": 400,
    "invalid_request": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "capability_denied": 403,
    "not_found": 404,
    "conflict": 409,
    "binding_required": 412,
    "binding_failed": 412,
    "payload_too_large": 413,
    "hash_mismatch": 422,
    "signature_failure": 422,
    "rate_limited": 429,
    "connector_runtime_error": 500,
    "outcome_unknown": 500,
    "internal_error": 500,
    "network_error": 502,
    "external_api_error": 502,
    "unavailable": 503,
    "resource_limit_exceeded": 507,
}

_log = logging.getLogger(__name__)


def failure_response(failure: Failure, status: int | None = None) -> JSONResponse:
    """Return the response that carries *failure*, with the status of its class unless one is given."""
    status = status or STATUS.get(failure.class_, 500)
    extra: dict[str, str] = {}
    if status == 401:
        extra["www-authenticate"] = "Bearer"
    if failure.class_ in ("rate_limited", "unavailable"):
        extra["retry-after"] = "1"
    return JSONResponse({"error": failure.to_json()}, status_code=status, headers=extra)


def error_response(error: Exception) -> JSONResponse:
    return failure_response(failure_from(error))


def failure_from(error: Exception) -> Failure:
    """Return what a client may know of *error*; of an unexpected one, only its type is logged."""
    if isinstance(error, AileronError):
        return error.to_failure()
    # Type only: the message may quote arguments, which never reach a log.
    _log.error("a request ended with %s", type(error).__name__)
    return InternalError(
        "An internal error of Aileron. Whether anything ran is unknown. See `aileron logs`."
    ).to_failure()
