"""Why one item of a batch was refused, when the call goes on: the same code, message and facts as in a status."""

from pathsieve.v1.problem_pb2 import Problem
from server.rpc.facts import facts_of, reason_of
from server.rpc.statuses import described

__all__ = ["problem_of"]


def problem_of(error: BaseException, doing: str) -> Problem:
    """The problem that stands in an item's result."""
    status = described(error, doing)
    details = {"reason": reason_of(error), **facts_of(error)} if status.details else {}
    return Problem(code=status.code, message=status.message, details=details)
