"""Errors of the client: the tree, their facts, and what makes them out of what a server says."""

import inspect
import pickle
import re

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import error_details_pb2, status_pb2

from pathsieve import errors
from pathsieve.errors import (
    AlreadyAttached,
    DeadlineExceeded,
    DocumentRefused,
    EtagMismatch,
    InvalidExpression,
    InvalidRequest,
    LimitExceeded,
    NotFound,
    NotInCluster,
    PathSieveError,
    ServerFault,
    Unavailable,
    Unsupported,
    WrongReplica,
)
from pathsieve.statuses import error_of_call, error_of_problem, is_passing
from pathsieve.v1.problem_pb2 import Problem

Code = grpc.StatusCode
CLASSES = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, PathSieveError)]


def failed(code: grpc.StatusCode, message: str, *details: object) -> grpc.aio.AioRpcError:
    packed = []
    for detail in details:
        packed.append(AnyMessage())
        packed[-1].Pack(detail)
    status = status_pb2.Status(code=code.value[0], message=message, details=packed)
    trailing = grpc.aio.Metadata(("grpc-status-details-bin", status.SerializeToString()))
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, message)


def info(reason: str, **facts: str) -> error_details_pb2.ErrorInfo:
    return error_details_pb2.ErrorInfo(reason=reason, domain="pathsieve", metadata=facts)


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_survives_pickling(kind: type[PathSieveError]) -> None:
    error = pickle.loads(pickle.dumps(kind("what and why", {"name": "x", "column": "8"}, "REASON")))
    assert type(error) is kind
    assert (str(error), error.facts, error.reason) == ("what and why", {"name": "x", "column": "8"}, "REASON")


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__ or "")
    assert sorted([*drawn, "PathSieveError"]) == sorted(errors.__all__) == sorted(kind.__name__ for kind in CLASSES)


REASONS = {
    "an_xpath": (Code.INVALID_ARGUMENT, "XPATH_SYNTAX_ERROR", InvalidExpression),
    "in_either_spelling": (Code.INVALID_ARGUMENT, "X_PATH_SYNTAX_ERROR", InvalidExpression),
    "a_boolean": (Code.INVALID_ARGUMENT, "BOOLEAN_SYNTAX_ERROR", InvalidExpression),
    "a_document": (Code.INVALID_ARGUMENT, "DOCUMENT_ERROR", DocumentRefused),
    "an_attribute": (Code.INVALID_ARGUMENT, "EVENT_ERROR", DocumentRefused),
    "a_field": (Code.INVALID_ARGUMENT, "INVALID_REQUEST", InvalidRequest),
    "attached": (Code.FAILED_PRECONDITION, "ALREADY_ATTACHED", AlreadyAttached),
    "another_replica": (Code.FAILED_PRECONDITION, "WRONG_REPLICA", WrongReplica),
    "no_cluster": (Code.FAILED_PRECONDITION, "NOT_IN_CLUSTER", NotInCluster),
    "an_etag": (Code.ABORTED, "ETAG_MISMATCH", EtagMismatch),
    "loading": (Code.UNAVAILABLE, "LOADING", Unavailable),
    "an_unknown_reason": (Code.NOT_FOUND, "SOMETHING_NEW", NotFound),
}


@pytest.mark.parametrize("code, reason, kind", REASONS.values(), ids=REASONS)
def test_the_servers_name_of_an_error_decides(code: grpc.StatusCode, reason: str, kind: type) -> None:
    error = error_of_call(failed(code, "words", info(reason, name="x")))
    assert type(error) is kind
    assert (str(error), error.reason, error.facts["name"]) == ("words", reason, "x")


def test_without_a_name_the_status_decides() -> None:
    assert type(error_of_call(failed(Code.UNIMPLEMENTED, "no such method"))) is Unsupported
    assert type(error_of_call(failed(Code.DEADLINE_EXCEEDED, "late"))) is DeadlineExceeded
    assert type(error_of_call(failed(Code.INTERNAL, "incident 7"))) is ServerFault
    error = error_of_call(failed(Code.UNAVAILABLE, "refused"), "host:7443")
    assert str(error) == "no answer from host:7443: refused"
    assert error.facts["address"] == "host:7443"


def test_facts_have_their_types() -> None:
    limit = error_of_call(
        failed(Code.RESOURCE_EXHAUSTED, "", info("LIMIT_EXCEEDED", limit="depth", allowed="100", found="1e3"))
    )
    assert isinstance(limit, LimitExceeded)
    assert (limit.limit, limit.allowed, limit.found, limit.retry_after) == ("depth", 100, 1000, None)
    violation = error_details_pb2.BadRequest.FieldViolation(field="filter.xpath")
    wrong = error_of_call(failed(Code.INVALID_ARGUMENT, "", error_details_pb2.BadRequest(field_violations=[violation])))
    assert isinstance(wrong, InvalidRequest)
    assert wrong.field == "filter.xpath"
    retry = error_details_pb2.RetryInfo()
    retry.retry_delay.FromMilliseconds(1500)
    busy = error_of_call(failed(Code.UNAVAILABLE, "busy", info("STORE_UNAVAILABLE"), retry))
    assert isinstance(busy, Unavailable)
    assert busy.retry_after == 1.5


PASSING = {
    "unavailable": (Unavailable("later"), True),
    "a_move": (WrongReplica("elsewhere", {"address": "b:7443"}), True),
    "a_rate": (LimitExceeded("slower", {"retry_after": "0.5"}), True),
    "a_size": (LimitExceeded("smaller"), False),
    "a_name": (NotFound("nowhere"), False),
}


@pytest.mark.parametrize("error, passing", PASSING.values(), ids=PASSING)
def test_some_errors_pass(error: PathSieveError, passing: bool) -> None:
    assert is_passing(error) == passing


def test_a_problem_of_an_item_is_of_the_kind_of_its_batch() -> None:
    bare = error_of_problem(Problem(code=3, message="no", details={"line": "2"}), DocumentRefused)
    assert isinstance(bare, DocumentRefused)
    assert bare.line == 2
    named = error_of_problem(Problem(code=3, details={"reason": "XPATH_SYNTAX_ERROR"}), DocumentRefused)
    assert type(named) is InvalidExpression
    assert type(error_of_problem(Problem(code=6), DocumentRefused)) is errors.AlreadyExists
    assert type(error_of_problem(Problem(code=99), DocumentRefused)) is ServerFault
