"""The one table from errors to gRPC statuses, and the details that programs read.

    error ──▶ code         what kind of failure, by class (a subclass stands for its nearest listed ancestor)
          ──▶ message      str(error): what was expected, where, what to do
          ──▶ ErrorInfo    always: reason (the class), domain "pathsieve", the facts
              BadRequest   which field is wrong
              QuotaFailure which limit
              RetryInfo    when to try again

A client follows `WrongReplica` to the address among its facts, so it is told to people only where nobody is there.

Anything that is not in the table is a fault of the server: the caller gets INTERNAL and an incident number, and the
log has the same number beside the traceback.
"""

import logging
import secrets
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from boolmatch import BooleanSyntaxError, EventError, UndecidedAtomError
from server import errors
from server.rpc.facts import clipped, facts_of, reason_of
from xpathfilter import DocumentError, NamespaceError, XPathSyntaxError

__all__ = ["DOMAIN", "code_of", "described", "status_of"]

DOMAIN = "pathsieve"
LONGEST_MESSAGE = 1000
"""It travels in headers, twice, and more than 8 KB of them is refused by many."""

DETAILS_KEY = "grpc-status-details-bin"

LOG = logging.getLogger("pathsieve.rpc")

Code = grpc.StatusCode

CODES: dict[type[BaseException], grpc.StatusCode] = {
    errors.InvalidRequest: Code.INVALID_ARGUMENT,
    XPathSyntaxError: Code.INVALID_ARGUMENT,
    NamespaceError: Code.INVALID_ARGUMENT,
    DocumentError: Code.INVALID_ARGUMENT,
    BooleanSyntaxError: Code.INVALID_ARGUMENT,
    UndecidedAtomError: Code.INVALID_ARGUMENT,
    EventError: Code.INVALID_ARGUMENT,
    errors.NotFound: Code.NOT_FOUND,
    errors.AlreadyExists: Code.ALREADY_EXISTS,
    errors.EtagMismatch: Code.ABORTED,
    errors.AlreadyAttached: Code.FAILED_PRECONDITION,
    errors.WrongReplica: Code.FAILED_PRECONDITION,
    errors.NotInCluster: Code.FAILED_PRECONDITION,
    errors.LimitExceeded: Code.RESOURCE_EXHAUSTED,
    errors.PermissionDenied: Code.PERMISSION_DENIED,
    errors.Unauthenticated: Code.UNAUTHENTICATED,
    errors.StoreUnavailable: Code.UNAVAILABLE,
    errors.Fenced: Code.UNAVAILABLE,
    errors.NoOwner: Code.UNAVAILABLE,
    errors.Draining: Code.UNAVAILABLE,
    errors.Loading: Code.UNAVAILABLE,
}

FIELDS: dict[type[BaseException], str] = {
    XPathSyntaxError: "filter.xpath",
    NamespaceError: "filter.namespaces",
    BooleanSyntaxError: "filter.boolean",
    UndecidedAtomError: "filter.boolean",
    DocumentError: "document.xml",
    EventError: "document.attributes",
}
"""Where an error of an engine points; our own errors name their field themselves."""


def described(error: BaseException, doing: str) -> status_pb2.Status:
    """What is told of an error that met somebody who was `doing` something; a fault of ours is logged."""
    code = code_of(error)
    if code is Code.INTERNAL:
        return status_pb2.Status(code=code.value[0], message=_incident(error, doing))
    return status_pb2.Status(code=code.value[0], message=clipped(str(error), LONGEST_MESSAGE), details=_details(error))


def status_of(error: BaseException, doing: str) -> tuple[grpc.StatusCode, str, tuple[tuple[str, bytes], ...]]:
    """Code, message and trailing metadata, as a servicer context's abort() wants them."""
    status = described(error, doing)
    return code_of(error), status.message, ((DETAILS_KEY, status.SerializeToString()),)


def code_of(error: BaseException) -> grpc.StatusCode:
    """The code of an error, by its class or the nearest ancestor in the table."""
    return next((CODES[ancestor] for ancestor in type(error).__mro__ if ancestor in CODES), Code.INTERNAL)


def _incident(error: BaseException, doing: str) -> str:
    number = secrets.token_hex(4)
    LOG.error("incident %s in %s", number, doing, exc_info=error)
    return f"the server failed, and this is its fault: incident {number}; its log has the same number"


def _details(error: BaseException) -> list[AnyMessage]:
    facts = facts_of(error)
    found: list[Message] = [error_details_pb2.ErrorInfo(reason=reason_of(error), domain=DOMAIN, metadata=facts)]
    field = facts.get("field") or FIELDS.get(type(error))
    if field:
        violation = error_details_pb2.BadRequest.FieldViolation(field=field, description=reason_of(error))
        found.append(error_details_pb2.BadRequest(field_violations=[violation]))
    if isinstance(error, errors.LimitExceeded):
        quota = error_details_pb2.QuotaFailure.Violation(subject=error.limit, description=reason_of(error))
        found.append(error_details_pb2.QuotaFailure(violations=[quota]))
    retry_after: Any = getattr(error, "retry_after", None)
    if retry_after is not None:
        found.append(error_details_pb2.RetryInfo(retry_delay=_duration(retry_after)))
    return [_packed(detail) for detail in found]


def _duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(round(seconds * 1e9))
    return duration


def _packed(detail: Message) -> AnyMessage:
    packed = AnyMessage()
    packed.Pack(detail)
    return packed
