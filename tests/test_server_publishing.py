"""Publishing: order, repetitions, refusals, a store that fails; with the real engines and a log that can be held."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import numpy as np
import pytest

from server.deliveries import EPHEMERAL
from server.documents import Document
from server.errors import Draining, StoreUnavailable
from server.log.match_log import Record
from server.matching import EngineMatching
from server.publishing import Published, Publishing, PublishingSettings, appending_to
from server.repetitions import key_of
from server.store.jobs import Operation
from server.subscriptions import Filter
from sievefilters import Matched, StandingFilters
from xpathfilter import DocumentError

QUOTE, HALTED, STREAMED = 1, 2, EPHEMERAL + 1


class HeldLog:
    """A log in a list. While `gate` is closed nothing is durable; `failure` is what appending ends with."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, str, list[int]]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: Exception | None = None
        self.failed: list[Document] = []
        self.answers = asyncio.Event()

    async def settled(self) -> None:
        await self.answers.wait()

    async def append(self, entries: Sequence[tuple[str, Document, np.ndarray]], also: Sequence[object] = ()) -> None:
        await self.gate.wait()
        if self.failure is not None:
            self.failed += [document for _, document, _ in entries]
            raise self.failure
        self.entries += [(tenant, document.id, numbers.tolist()) for tenant, document, numbers in entries]


class Streams:
    """What ephemeral streams were told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[int]]] = []

    def dispatch_ephemeral(self, document: Document, numbers: np.ndarray) -> None:
        self.told.append((document.id, numbers.tolist()))


class BrokenFilters(StandingFilters):
    """What should never be."""

    def match_many(self, documents: Sequence[Document], threads: int = 1) -> list[Matched]:
        raise ZeroDivisionError


class Bench:
    """Everything around the publishing of two tenants; the second one has no filters."""

    def __init__(self, **settings: float) -> None:
        self.now = 1000.0
        self.log, self.streams = HeldLog(), Streams()
        self.tenants = {"desk": StandingFilters(), "other": StandingFilters()}
        for number, path in ((QUOTE, "//quote"), (HALTED, "//halted"), (STREAMED, "//streamed")):
            filters = self.tenants["desk"]
            filters.reveal(filters.prepare(Filter("xpath", path)), number)
        self.publishing = Publishing(
            EngineMatching(self.tenants.__getitem__),
            appending_to(self.log),  # type: ignore[arg-type]
            self.streams,
            self.log.settled,
            PublishingSettings(**settings),  # type: ignore[arg-type]
            clock=lambda: self.now,
        )

    async def publish(self, *documents: Document, tenant: str = "desk") -> list[object]:
        return list(await self.publishing.publish(tenant, documents))


@asynccontextmanager
async def bench(**settings: float) -> AsyncIterator[Bench]:
    made = Bench(**settings)
    made.publishing.start()
    yield made
    await made.publishing.close()


def quote(document_id: str, source: str = "") -> Document:
    return Document(document_id, source, b"<quote/>")


async def test_a_document_is_acknowledged_with_the_number_of_its_matches() -> None:
    async with bench() as our:
        both = Document("2", xml=b"<quote><halted/></quote>")
        assert await our.publish(quote("1"), both) == [Published("1", 1), Published("2", 2)]
        assert our.log.entries == [("desk", "1", [QUOTE]), ("desk", "2", [QUOTE, HALTED])]


async def test_what_nobody_wants_is_acknowledged_and_not_stored() -> None:
    async with bench() as our:
        assert await our.publish(Document("1", xml=b"<nothing/>")) == [Published("1", 0)]
        assert our.log.entries == []


async def test_a_document_meets_only_subscriptions_of_its_tenant() -> None:
    async with bench() as our:
        assert await our.publish(quote("1"), tenant="other") == [Published("1", 0)]


async def test_a_bad_document_is_refused_alone() -> None:
    async with bench() as our:
        good, bad = await our.publish(quote("1"), Document("2", xml=b"<quote>"))
        assert good == Published("1", 1)
        assert isinstance(bad, DocumentError)


async def test_a_document_without_an_id_gets_one_and_is_never_a_repetition() -> None:
    async with bench() as our:
        first, second = await our.publish(quote(""), quote(""))
        assert isinstance(first, Published)
        assert isinstance(second, Published)
        assert first.document_id != second.document_id
        assert len(our.log.entries) == 2


async def test_a_repetition_is_acknowledged_and_not_delivered_again() -> None:
    async with bench() as our:
        await our.publish(quote("1"))
        assert await our.publish(quote("1")) == [Published("1", duplicate=True)]
        assert len(our.log.entries) == 1


async def test_the_same_id_of_another_source_is_another_document() -> None:
    async with bench() as our:
        await our.publish(quote("1", "reuters"))
        assert await our.publish(quote("1", "ap")) == [Published("1", 1)]


async def test_an_id_may_come_again_when_the_window_has_passed() -> None:
    async with bench(repetition_window=60) as our:
        await our.publish(quote("1"))
        our.now += 61
        assert await our.publish(quote("1")) == [Published("1", 1)]


async def test_only_so_many_ids_are_remembered_and_the_oldest_is_forgotten_first() -> None:
    async with bench(most_repetitions=2) as our:
        await our.publish(quote("1"), quote("2"), quote("3"))
        outcomes = await our.publish(quote("3"), quote("1"))
        assert outcomes == [Published("3", duplicate=True), Published("1", 1)]


async def test_a_repetition_of_one_in_flight_waits_for_it() -> None:
    async with bench() as our:
        our.log.gate.clear()
        first = asyncio.create_task(our.publish(quote("1")))
        await asyncio.sleep(0)
        second = asyncio.create_task(our.publish(quote("1")))
        done, _ = await asyncio.wait([first, second], timeout=0.1)
        assert not done
        our.log.gate.set()
        assert await first == [Published("1", 1)]
        assert await second == [Published("1", duplicate=True)]


async def test_a_repetition_within_one_call_shares_the_fate_of_the_first() -> None:
    async with bench() as our:
        our.log.failure = StoreUnavailable("the disk is full")
        assert await our.publish(quote("1"), quote("1")) == [our.log.failure] * 2


async def test_what_the_store_could_not_take_may_be_sent_again() -> None:
    async with bench() as our:
        our.log.failure = StoreUnavailable("the disk is full")
        unwanted = Document("2", xml=b"<nothing/>")
        assert await our.publish(quote("1"), unwanted) == [our.log.failure, Published("2", 0)]
        our.log.failure = None
        assert await our.publish(quote("1")) == [Published("1", 1)]


async def test_what_may_be_sent_again_is_not_counted_as_refused() -> None:
    async with bench() as our:
        our.log.failure = StoreUnavailable("the disk is full")
        await our.publish(quote("1"), quote("2"), Document("3", xml=b"<oops"), Document("4", xml=b"<nothing/>"))
        counts = our.publishing.counts
        assert (counts.unavailable, counts.refused, counts.accepted) == (2, 1, 1)


@pytest.mark.parametrize("has_landed", [True, False])
async def test_a_repetition_of_what_the_store_may_have_taken_waits_until_it_is_known(has_landed: bool) -> None:
    async with bench() as our:
        our.log.failure = unknown = StoreUnavailable("no answer within 30 s", outcome_unknown=True)
        assert await our.publish(quote("1")) == [unknown]
        our.log.failure = None
        again = asyncio.create_task(our.publish(quote("1")))
        done, _ = await asyncio.wait([again], timeout=0.1)
        assert not done
        if has_landed:
            position, document = 1, our.log.failed[0]
            our.publishing.landed([Record(position, document, np.array([QUOTE]), np.array([1]))])
        our.log.answers.set()
        assert await again == ([Published("1", duplicate=True)] if has_landed else [unknown])
        assert await our.publish(quote("1")) == [Published("1", duplicate=True) if has_landed else Published("1", 1)]


async def test_a_fault_in_the_store_does_not_stop_the_documents_behind(caplog: pytest.LogCaptureFixture) -> None:
    async with bench() as our:
        our.log.failure = ZeroDivisionError()
        assert await our.publish(quote("1")) == [our.log.failure]
        our.log.failure = None
        assert await our.publish(quote("2")) == [Published("2", 1)]
    assert "appending 1 documents failed" in caplog.text


async def test_a_fault_in_matching_does_not_stop_the_documents_behind(caplog: pytest.LogCaptureFixture) -> None:
    async with bench() as our:
        our.tenants["broken"] = BrokenFilters()
        failed = await our.publish(quote("1"), tenant="broken")
        assert isinstance(failed[0], ZeroDivisionError)
        assert await our.publish(quote("2")) == [Published("2", 1)]
    assert "matching 1 documents failed" in caplog.text


async def test_ephemeral_streams_are_told_when_the_document_is_durable_and_not_before() -> None:
    async with bench() as our:
        our.log.gate.clear()
        both = Document("1", xml=b"<quote><streamed/></quote>")
        publishing = asyncio.create_task(our.publish(both))
        await asyncio.wait([publishing], timeout=0.1)
        assert our.streams.told == []
        our.log.gate.set()
        assert await publishing == [Published("1", 2)]
        assert our.streams.told == [("1", [STREAMED])]
        assert our.log.entries == [("desk", "1", [QUOTE])]


async def test_documents_of_one_publisher_stay_in_order() -> None:
    async with bench(batch_documents=3) as our:
        calls = [our.publish(*(quote(f"{call}-{n}") for n in range(1 + call % 5))) for call in range(40)]
        await asyncio.gather(*calls)
        expected = [f"{call}-{n}" for call in range(40) for n in range(1 + call % 5)]
        assert [document_id for _, document_id, _ in our.log.entries] == expected


async def test_a_caller_who_goes_away_leaves_nothing_stuck() -> None:
    async with bench() as our:
        our.log.gate.clear()
        gone = asyncio.create_task(our.publish(quote("1")))
        await asyncio.sleep(0.01)
        gone.cancel()
        again = asyncio.create_task(our.publish(quote("1")))
        await asyncio.sleep(0)
        our.log.gate.set()
        assert await again == [Published("1", duplicate=True)]
        assert our.log.entries == [("desk", "1", [QUOTE])]


async def test_more_than_there_is_room_for_waits_outside() -> None:
    async with bench(most_waiting_bytes=20) as our:
        our.log.gate.clear()
        calls = [asyncio.create_task(our.publish(quote(str(n)))) for n in range(10)]
        await asyncio.wait(calls, timeout=0.1)
        assert our.publishing._waiting_bytes <= 20
        our.log.gate.set()
        assert [await call for call in calls] == [[Published(str(n), 1)] for n in range(10)]


async def test_a_document_larger_than_all_the_room_goes_through_alone() -> None:
    async with bench(most_waiting_bytes=4) as our:
        calls = [our.publish(quote(str(n))) for n in range(3)]
        assert await asyncio.gather(*calls) == [[Published(str(n), 1)] for n in range(3)]


async def test_draining_finishes_what_was_taken_and_takes_no_more() -> None:
    async with bench() as our:
        our.log.gate.clear()
        taken = asyncio.create_task(our.publish(quote("1")))
        await asyncio.sleep(0.01)
        draining = asyncio.create_task(our.publishing.drain())
        await asyncio.sleep(0)
        with pytest.raises(Draining):
            await our.publish(quote("2"))
        assert not draining.done()
        our.log.gate.set()
        await draining
        assert await taken == [Published("1", 1)]


async def test_with_something_else_in_the_transaction_it_is_all_or_nothing() -> None:
    def never(n_documents: int, n_matches: int) -> Operation:
        raise AssertionError("a batch of which a document fails is not marked as published")

    async with bench() as our:
        outcomes = await our.publishing.publish("desk", [quote("1"), Document("2", xml=b"<quote>")], also=never)
        assert [type(outcome) for outcome in outcomes] == [DocumentError, DocumentError]
        assert our.log.entries == []
        assert await our.publish(quote("1")) == [Published("1", 1)]


async def test_what_others_publish_just_now_is_waited_for_before_it_is_taken_for_a_repetition() -> None:
    async with bench() as our:
        our.log.gate.clear()
        first = asyncio.create_task(our.publish(quote("1")))
        while our.publishing.repetitions.in_flight(key_of("desk", "", "1")) is None:
            await asyncio.sleep(0)
        told: list[tuple[int, int]] = []

        def also(n_documents: int, n_matches: int) -> Operation:
            told.append((n_documents, n_matches))
            return lambda connection: None

        second = asyncio.create_task(our.publishing.publish("desk", [quote("1")], also=also))
        our.log.failure = StoreUnavailable("full")
        our.log.gate.set()
        assert isinstance((await first)[0], StoreUnavailable)
        our.log.failure = None
        assert await second == [Published("1", 1)]
        assert told == [(1, 1)]
