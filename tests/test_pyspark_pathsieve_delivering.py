"""Rows to documents, and documents to a server that fails in all ways; without Spark and without a server."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pathsieve import Document, Published, Staged
from pathsieve.errors import DeadlineExceeded, DocumentRefused, LimitExceeded, PathSieveError, Unavailable
from pyspark_pathsieve.columns import Columns
from pyspark_pathsieve.dead_letters import DeadLetters
from pyspark_pathsieve.delivering import Publishing, Staging
from pyspark_pathsieve.errors import MalformedDocument
from pyspark_pathsieve.malformed import Dropping, Failing
from pyspark_pathsieve.patience import Patience
from pyspark_pathsieve.places import Place
from pyspark_pathsieve.rows import Row, rows_of

PLACE = Place("q", 7, 3)
BODY = Columns("body")


class Server:
    """Takes parts; each call first meets the next of `failures`. Documents of more than `room` are too much."""

    def __init__(self, *failures: PathSieveError | None, room: int = 1000) -> None:
        self.failures = list(failures)
        self.room = room
        self.staged: dict[int, list[bytes]] = {}
        self.published: list[str] = []

    def stage(
        self, query: str, batch: int, documents: Sequence[Document], *, partition: int, attempt: int, timeout: float
    ) -> Staged:
        assert (query, batch, partition) == ("q", 7, 3)
        failure = self.failures.pop(0) if self.failures else None
        if failure or len(documents) > self.room:
            raise failure or LimitExceeded("too much")
        bad = {at: DocumentRefused("bad") for at, one in enumerate(documents) if one.xml == b"bad"}
        self.staged[attempt] = [one.xml for one in documents if one.xml != b"bad"]
        return Staged(len(documents) - len(bad), bad)

    def publish_many(self, documents: Iterable[Document]) -> Iterator[Published]:
        for document in documents:
            self.published.append(document.id)
            yield Published(document.id, error=DocumentRefused("bad") if document.xml == b"bad" else None)


def rows(*bodies: str | None) -> Iterator[Row]:
    return rows_of([pa.RecordBatch.from_pydict({"body": pa.array(bodies, pa.string())})], BODY)


def staging(server: Server, chunk: int = 4) -> Staging:
    now = [0.0]
    patience = Patience(5.0, lambda: now[0], lambda seconds: now.__setitem__(0, now[0] + seconds))
    return Staging(server, PLACE, chunk, 1.0, patience)  # type: ignore[arg-type]


FAILURES: dict[str, list[PathSieveError | None]] = {
    "none": [],
    "nobody_there": [Unavailable("gone"), Unavailable("gone")],
    "later": [None, Unavailable("gone")],
    "too_slow": [DeadlineExceeded("slow")],
    "slow_and_gone": [DeadlineExceeded("slow"), Unavailable("gone"), DeadlineExceeded("slow")],
    "a_rate": [LimitExceeded("slower", {"retry_after": "0.5"})],
}


@pytest.mark.parametrize("failures", FAILURES.values(), ids=FAILURES)
def test_parts_have_each_row_once_whatever_fails(failures: list[PathSieveError | None]) -> None:
    server = Server(*failures)
    task = staging(server)
    bodies = [f"d{n}" for n in range(10)]
    assert task.deliver(rows(*bodies), Failing(PLACE)) == 10
    assert [xml.decode() for part in task.parts for xml in server.staged[part.attempt]] == bodies
    assert [part.documents for part in task.parts] == [len(server.staged[part.attempt]) for part in task.parts]


def test_what_is_too_much_at_once_is_handed_over_in_halves() -> None:
    task = staging(Server(room=3), chunk=8)
    assert task.deliver(rows(*map(str, range(8))), Failing(PLACE)) == 8
    assert [part.documents for part in task.parts] == [2, 2, 2, 2]


def test_a_single_document_that_is_too_much_is_malformed() -> None:
    malformed = Dropping(PLACE)
    assert staging(Server(room=0)).deliver(rows("a", "b"), malformed) == 0
    assert malformed.count == 2


def test_patience_has_an_end() -> None:
    with pytest.raises(Unavailable):
        staging(Server(*[Unavailable("gone")] * 100)).deliver(rows("a"), Failing(PLACE))


def test_the_malformed_one_is_named() -> None:
    with pytest.raises(MalformedDocument, match="a document in partition 3, row 2: bad; mend it") as caught:
        staging(Server()).deliver(rows("a", "b", "bad"), Failing(PLACE))
    assert (caught.value.partition, caught.value.row, caught.value.document_id) == (3, 2, None)


def test_a_row_that_makes_no_document_is_malformed() -> None:
    malformed = Dropping(PLACE)
    assert (
        staging(Server()).deliver(rows("a", None, "<?xml version='1.0' encoding='latin-1'?><a>€</a>"), malformed) == 1
    )
    assert malformed.count == 2


def test_ids_are_the_same_when_rows_come_again_in_another_order() -> None:
    server = Server()
    for order in (["a", "b", "a", "bad"], ["b", "bad", "a", "a"]):
        assert Publishing(server, PLACE).deliver(rows(*order), Dropping(PLACE)) == 3  # type: ignore[arg-type]
    assert set(Counter(server.published).values()) == {2}
    Publishing(server, Place("q", 7, 4)).deliver(rows("a"), Failing(PLACE))  # type: ignore[arg-type]
    assert server.published[-1] not in server.published[:-1]


def test_dead_letters_of_an_attempt_replace_those_of_the_one_before(tmp_path: Path) -> None:
    def letters(*bodies: str) -> DeadLetters:
        taking = DeadLetters(str(tmp_path), PLACE)
        for row in rows(*bodies):
            taking.take(row, DocumentRefused("why"))
        return taking

    letters("lost").give_up()
    letters("a", "b").finish()
    file = letters("b", "c").finish()
    assert [path.name for path in tmp_path.iterdir()] == ["q-7-3.parquet"]
    assert file is not None
    found: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    assert [(one["body"], one["_pathsieve_reason"], one["_pathsieve_row"]) for one in found] == [
        ("b", "why", 0),
        ("c", "why", 1),
    ]
    assert letters().finish() is None
    assert list(tmp_path.iterdir()) == []
