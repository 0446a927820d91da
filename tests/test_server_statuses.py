"""Errors become statuses: a code, a message for people, facts for programs."""

import inspect
import logging

import pytest
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode

from boolmatch import BooleanSyntaxError, EventError, UndecidedAtomError
from server import errors
from server.rpc.facts import facts_of, reason_of
from server.rpc.problems import problem_of
from server.rpc.statuses import CODES, code_of, described, status_of
from xpathfilter import DocumentError, NamespaceError, XPathSyntaxError

CASES = {
    "a_wrong_field": (
        errors.InvalidRequest("page_size", "expected 0 or more"),
        (StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST", {"field": "page_size"}),
    ),
    "a_wrong_xpath": (
        XPathSyntaxError("//book/[price]", 8, "a node test"),
        (StatusCode.INVALID_ARGUMENT, "XPATH_SYNTAX_ERROR", {"column": "8", "expected": "a node test"}),
    ),
    "a_wrong_boolean": (
        BooleanSyntaxError("price >", 8, "a constant"),
        (StatusCode.INVALID_ARGUMENT, "BOOLEAN_SYNTAX_ERROR", {"column": "8", "text": "price >"}),
    ),
    "an_atom_without_a_decider": (
        UndecidedAtomError("XPATH '//a'", 8),
        (StatusCode.INVALID_ARGUMENT, "UNDECIDED_ATOM_ERROR", {"column": "8"}),
    ),
    "a_wrong_prefix": (
        NamespaceError("x", "is not bound"),
        (StatusCode.INVALID_ARGUMENT, "NAMESPACE_ERROR", {"prefix": "x"}),
    ),
    "a_wrong_document": (
        DocumentError("the document declares entities", 3, 7, "write them out"),
        (StatusCode.INVALID_ARGUMENT, "DOCUMENT_ERROR", {"line": "3", "column": "7", "hint": "write them out"}),
    ),
    "a_wrong_attribute": (
        EventError("price", "NaN is no number"),
        (StatusCode.INVALID_ARGUMENT, "EVENT_ERROR", {"attribute": "price"}),
    ),
    "nothing_there": (
        errors.NotFound("subscriptions/x"),
        (StatusCode.NOT_FOUND, "NOT_FOUND", {"name": "subscriptions/x"}),
    ),
    "something_there": (
        errors.AlreadyExists("subscriptions/x"),
        (StatusCode.ALREADY_EXISTS, "ALREADY_EXISTS", {"name": "subscriptions/x"}),
    ),
    "another_etag": (
        errors.EtagMismatch("subscriptions/x", "1", "2"),
        (StatusCode.ABORTED, "ETAG_MISMATCH", {"etag": "2"}),
    ),
    "another_stream": (
        errors.AlreadyAttached("subscriptions/x", "exclusively"),
        (StatusCode.FAILED_PRECONDITION, "ALREADY_ATTACHED", {"name": "subscriptions/x"}),
    ),
    "another_replica": (
        errors.WrongReplica("subscriptions/x", "b:7443"),
        (StatusCode.FAILED_PRECONDITION, "WRONG_REPLICA", {"name": "subscriptions/x", "address": "b:7443"}),
    ),
    "no_replica": (
        errors.WrongReplica("subscriptions/x", retry_after=2.5),
        (StatusCode.FAILED_PRECONDITION, "WRONG_REPLICA", {"address": "", "retry_after": "2.5"}),
    ),
    "no_cluster": (errors.NotInCluster(), (StatusCode.FAILED_PRECONDITION, "NOT_IN_CLUSTER", {})),
    "too_much": (
        errors.LimitExceeded("max_document_bytes", 10, 20),
        (StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED", {"limit": "max_document_bytes", "allowed": "10"}),
    ),
    "no_role": (
        errors.PermissionDenied("this needs the role publish", role="publish"),
        (StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED", {"role": "publish"}),
    ),
    "no_token": (
        errors.Unauthenticated("no token", why="missing"),
        (StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED", {"why": "missing"}),
    ),
    "no_store": (
        errors.StoreUnavailable("the disk is full", 2.5),
        (StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE", {"retry_after": "2.5"}),
    ),
    "starting": (
        errors.Loading("5 subscriptions"),
        (StatusCode.UNAVAILABLE, "LOADING", {"retry_after": "1.0"}),
    ),
    "stopping": (errors.Draining(), (StatusCode.UNAVAILABLE, "DRAINING", {"retry_after": "1.0"})),
}

Expected = tuple[StatusCode, str, dict[str, str]]


def detail(status: status_pb2.Status, kind: type[Message]) -> Message | None:
    message = kind()
    return next((message for packed in status.details if packed.Unpack(message)), None)


@pytest.mark.parametrize("error, expected", CASES.values(), ids=CASES)
def test_an_error_has_a_code_a_message_and_facts(error: Exception, expected: Expected) -> None:
    code, reason, facts = expected
    status = described(error, "a test")
    assert (status.code, status.message) == (code.value[0], str(error))
    info = detail(status, error_details_pb2.ErrorInfo)
    assert (info.reason, info.domain) == (reason, "pathsieve")
    assert facts.items() <= dict(info.metadata).items()


@pytest.mark.parametrize("error, expected", CASES.values(), ids=CASES)
def test_the_problem_of_an_item_says_the_same(error: Exception, expected: Expected) -> None:
    code, reason, facts = expected
    problem = problem_of(error, "a test")
    assert (problem.code, problem.message) == (code.value[0], str(error))
    assert {"reason": reason, **facts}.items() <= dict(problem.details).items()


FIELDS = {
    "its_own": (errors.InvalidRequest("page_size", "expected 0 or more"), "page_size"),
    "of_an_xpath": (XPathSyntaxError("//a[", 5, "a predicate"), "filter.xpath"),
    "of_a_boolean": (BooleanSyntaxError("a >", 4, "a constant"), "filter.boolean"),
    "of_a_document": (DocumentError("is not XML", 1, 1), "document.xml"),
}


@pytest.mark.parametrize("error, field", FIELDS.values(), ids=FIELDS)
def test_a_bad_request_names_its_field(error: Exception, field: str) -> None:
    bad = detail(described(error, "a test"), error_details_pb2.BadRequest)
    assert [violation.field for violation in bad.field_violations] == [field]


def test_who_may_try_again_is_told_when() -> None:
    retry = detail(described(errors.StoreUnavailable("gone", 2.5), "a test"), error_details_pb2.RetryInfo)
    assert retry.retry_delay.ToTimedelta().total_seconds() == 2.5


def test_who_is_sent_elsewhere_is_not_told_to_wait() -> None:
    elsewhere = described(errors.WrongReplica("subscriptions/x", "b:7443"), "a test")
    nowhere = described(errors.WrongReplica("subscriptions/x"), "a test")
    assert detail(elsewhere, error_details_pb2.RetryInfo) is None
    assert detail(nowhere, error_details_pb2.RetryInfo) is not None


def test_a_limit_without_a_time_promises_nothing() -> None:
    status = described(errors.LimitExceeded("max_document_bytes", 10, 20), "a test")
    assert detail(status, error_details_pb2.RetryInfo) is None
    assert detail(status, error_details_pb2.QuotaFailure).violations[0].subject == "max_document_bytes"


def test_every_error_that_a_client_can_meet_is_in_the_table() -> None:
    ours = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__}
    never_told = {errors.ServerError, errors.StoreError, errors.CannotStart, errors.DeliveredElsewhere}
    assert ours - set(CODES) == never_told


def test_a_subclass_stands_for_its_ancestor() -> None:
    class VeryWrong(errors.InvalidRequest):
        pass

    assert code_of(VeryWrong("field", "expected")) is StatusCode.INVALID_ARGUMENT


def test_a_fault_of_ours_is_an_incident_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        status = described(KeyError("a secret place"), "/pathsieve.v1.PublishService/Publish")
    assert status.code == StatusCode.INTERNAL.value[0]
    assert "secret" not in str(status)
    assert not status.details
    incident = status.message.partition("incident ")[2][:8]
    assert f"incident {incident} in /pathsieve.v1.PublishService/Publish" in caplog.text
    assert "a secret place" in caplog.text


def test_the_problem_of_a_fault_tells_nothing_either() -> None:
    problem = problem_of(KeyError("a secret place"), "publish")
    assert (problem.code, dict(problem.details)) == (StatusCode.INTERNAL.value[0], {})


def test_what_travels_in_headers_is_short() -> None:
    error = errors.InvalidRequest("x", "y" * 10_000, value="z" * 10_000)
    _, message, [(key, value)] = status_of(error, "a test")
    assert len(message) == 1000
    assert key == "grpc-status-details-bin"
    assert len(value) < 3000
    assert len(facts_of(error)["value"]) == 200


def test_reasons_are_constants() -> None:
    assert reason_of(XPathSyntaxError("", 1, "")) == "XPATH_SYNTAX_ERROR"
