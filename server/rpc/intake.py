"""Documents from the wire to the broker, and what became of each of them back.

    messages ──▶ documents, or why not ──▶ broker ──▶ published, or why not ──▶ results, in the order of the messages

Documents that cannot be read stay behind with their errors; the others go on.
"""

from collections.abc import Callable, Iterable, Sequence

from boolmatch import EventError
from pathsieve.v1 import document_pb2
from pathsieve.v1.publish_service_pb2 import PublishResult
from server.broker import Broker, Outcome
from server.documents import Document
from server.errors import LimitExceeded
from server.rpc.problems import problem_of
from server.rpc.translate import document_from

__all__ = ["Intake", "result_of"]


class Intake:
    """Takes documents in."""

    def __init__(self, broker: Callable[[], Broker], max_document_bytes: int) -> None:
        self._broker = broker
        self._max_document_bytes = max_document_bytes

    async def publish(
        self, tenant: str, messages: Sequence[document_pb2.Document], first_index: int = 0
    ) -> list[PublishResult]:
        """Publish all that can be; the results count from `first_index`."""
        read = self.read(messages)
        outcomes = iter(await self._broker().publish(tenant, [item for item in read if isinstance(item, Document)]))
        settled = (next(outcomes) if isinstance(item, Document) else item for item in read)
        return [result_of(index, outcome) for index, outcome in enumerate(settled, first_index)]

    def read(self, messages: Iterable[document_pb2.Document]) -> list[Document | Exception]:
        """Each document, or why it is none."""
        return [self._read(message) for message in messages]

    def _read(self, message: document_pb2.Document) -> Document | Exception:
        try:
            document = document_from(message)
        except EventError as error:
            return error
        if len(document.xml) > self._max_document_bytes:
            return LimitExceeded("max_document_bytes", self._max_document_bytes, len(document.xml), "split it")
        return document


def result_of(index: int, outcome: Outcome | Exception) -> PublishResult:
    """What is told of one document."""
    if isinstance(outcome, BaseException):
        return PublishResult(index=index, problem=problem_of(outcome, "publish"))
    return PublishResult(
        index=index, document_id=outcome.document_id, matches=outcome.matches, duplicate=outcome.duplicate
    )
