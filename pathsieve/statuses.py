"""From what a server answers to the errors of `pathsieve.errors`: the one table of both.

    status + ErrorInfo, BadRequest, RetryInfo      of a call that failed
    Problem                                        of one item of a batch

The server names its own error class in `ErrorInfo.reason`; that decides. Where there is none, as when nobody answers
at all, the status does. Words and facts come from the server as they are.
"""

import grpc
from google.rpc import error_details_pb2, status_pb2

from pathsieve.errors import (
    AlreadyAttached,
    AlreadyExists,
    DeadlineExceeded,
    DocumentRefused,
    EtagMismatch,
    InvalidExpression,
    InvalidRequest,
    LimitExceeded,
    NotFound,
    NotInCluster,
    PathSieveError,
    PermissionDenied,
    ServerFault,
    Unauthenticated,
    Unavailable,
    Unsupported,
    WrongReplica,
)
from pathsieve.v1 import problem_pb2

__all__ = ["error_of_call", "error_of_problem", "is_passing", "is_unexplained"]

BROKEN = ("Internal error from Core", "Stream removed", "Received RST_STREAM")
"""How gRPC tells that a stream ended while it was being written to. What the server had said is lost: ask again."""

DETAILS_KEY = "grpc-status-details-bin"

BY_REASON: dict[str, type[PathSieveError]] = {
    "INVALIDREQUEST": InvalidRequest,
    "NAMESPACEERROR": InvalidRequest,
    "XPATHSYNTAXERROR": InvalidExpression,
    "BOOLEANSYNTAXERROR": InvalidExpression,
    "UNDECIDEDATOMERROR": InvalidExpression,
    "DOCUMENTERROR": DocumentRefused,
    "EVENTERROR": DocumentRefused,
    "NOTFOUND": NotFound,
    "ALREADYEXISTS": AlreadyExists,
    "ETAGMISMATCH": EtagMismatch,
    "LIMITEXCEEDED": LimitExceeded,
    "ALREADYATTACHED": AlreadyAttached,
    "WRONGREPLICA": WrongReplica,
    "NOTINCLUSTER": NotInCluster,
    "PERMISSIONDENIED": PermissionDenied,
    "UNAUTHENTICATED": Unauthenticated,
    "STOREUNAVAILABLE": Unavailable,
    "FENCED": Unavailable,
    "NOOWNER": Unavailable,
    "DRAINING": Unavailable,
    "LOADING": Unavailable,
}
"""By the server's name of the error, without underscores: XPathSyntaxError has more than one spelling with them."""

BY_STATUS: dict[grpc.StatusCode, type[PathSieveError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.OUT_OF_RANGE: InvalidRequest,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExists,
    grpc.StatusCode.ABORTED: EtagMismatch,
    grpc.StatusCode.RESOURCE_EXHAUSTED: LimitExceeded,
    grpc.StatusCode.FAILED_PRECONDITION: AlreadyAttached,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.CANCELLED: Unavailable,  # by the server, as it went away: what we cancel ourselves is not told so
    grpc.StatusCode.UNIMPLEMENTED: Unsupported,
}
BY_NUMBER = {status.value[0]: status for status in grpc.StatusCode}


def error_of_call(failed: grpc.aio.AioRpcError, address: str = "") -> PathSieveError:
    """The error that a failed call is; `address` is told where nobody answered."""
    reason, facts = _details(failed)
    kind = BY_REASON.get(reason.replace("_", "")) or BY_STATUS.get(failed.code(), ServerFault)
    message = failed.details() or failed.code().name
    if message.startswith(BROKEN):
        kind = Unavailable
        facts["broken"] = message
    if kind is Unavailable and not reason:
        message = f"no answer from {address}: {message}"
        facts["address"] = address
    return kind(message, facts, reason)


def _details(failed: grpc.aio.AioRpcError) -> tuple[str, dict[str, str]]:
    """The server's name of an error and its facts."""
    reason, facts = "", {}
    for detail in _status(failed).details:
        info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            reason = info.reason
            facts.update(info.metadata)
        elif detail.Unpack(bad) and bad.field_violations:
            facts.setdefault("field", bad.field_violations[0].field)
        elif detail.Unpack(retry):
            facts.setdefault("retry_after", str(retry.retry_delay.ToTimedelta().total_seconds()))
    return reason, facts


def _status(failed: grpc.aio.AioRpcError) -> status_pb2.Status:
    found = [value for key, value in failed.trailing_metadata() if key == DETAILS_KEY]
    return status_pb2.Status.FromString(found[0]) if found else status_pb2.Status()


def error_of_problem(problem: problem_pb2.Problem, refused: type[InvalidRequest]) -> PathSieveError:
    """The error that a refused item of a batch is; one that is not valid is of the kind `refused`."""
    facts = dict(problem.details)
    reason = facts.get("reason", "")
    kind = BY_STATUS.get(BY_NUMBER.get(problem.code, grpc.StatusCode.UNKNOWN), ServerFault)
    if kind is InvalidRequest:
        kind = refused
    return BY_REASON.get(reason.replace("_", ""), kind)(problem.message, facts, reason)


def is_unexplained(error: PathSieveError) -> bool:
    """Whether a stream ended, and gRPC has lost the reason; the next call to the server tells it."""
    return "broken" in error.facts


def is_passing(error: PathSieveError) -> bool:
    """Whether the same request may go well a little later."""
    return isinstance(error, Unavailable) or (isinstance(error, LimitExceeded) and error.retry_after is not None)
