"""Replicas over one store give the answers of a single server, whoever owns what and whatever moves meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from pathsieve.v1.peer_service_pb2 import MatchAnswer, MatchBatch
from server.broker import Published
from server.cluster.answering import Answering
from server.deliveries import Credit, Goodbye, GoodbyeReason, Messages
from server.documents import Document
from server.errors import DeliveredElsewhere, EtagMismatch, NoOwner, StoreUnavailable, WrongReplica
from server.reading import Mark
from server.store.subscriptions import Columns
from server.subscriptions import Filter, Subscription
from tests.cluster_scene import Scene, cluster

TENANT = "default"


def wish(name: str, path: str) -> Subscription:
    return Subscription(TENANT, name, Filter("xpath", path))


async def publish(scene: Scene, at: str, name: str, xml: bytes = b"<a><b/></a>") -> Published:
    outcome = (await scene[at].publish(TENANT, [Document(name, "test", xml)]))[0]
    assert isinstance(outcome, Published), outcome
    return outcome


async def published(scene: Scene, at: str, name: str) -> Published:
    """The outcome when nobody is missing any more."""
    while True:
        outcome = (await scene[at].publish(TENANT, [Document(name, "test", b"<b/>")]))[0]
        if isinstance(outcome, Published):
            return outcome
        assert isinstance(outcome, NoOwner)


async def pulled(scene: Scene, subscription_id: str, n_messages: int) -> list[tuple[int, str]]:
    """What a subscription gets, from whichever replica delivers it."""
    number = (await next(iter(scene.replicas.values())).broker.get(TENANT, subscription_id)).number
    owner = scene.tokens["notifying"].owners[number % 256].owner
    found: list[tuple[int, str]] = []
    async with asyncio.timeout(10):
        while len(found) < n_messages:
            messages = await scene[owner].pull(TENANT, subscription_id, 100, wait=1.0)
            found += [(message.sequence, message.document.id) for message in messages]
            await scene[owner].acknowledge(TENANT, subscription_id, [message.sequence for message in messages])
    return found


async def test_a_document_meets_the_subscriptions_of_all_replicas(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b", "c") as scene:
        await scene.share()
        for number in range(40):
            await scene["abc"[number % 3]].create(wish(f"s{number}", "//b" if number % 2 else "//c"))
        assert (await publish(scene, "a", "d1")).matches == 20
        assert (await publish(scene, "c", "d2", b"<c/>")).matches == 20
        assert (await publish(scene, "b", "d3", b"<z/>")).matches == 0
        assert await pulled(scene, "s1", 1) == [(1, "d1")]
        assert await pulled(scene, "s2", 1) == [(1, "d2")]


async def test_a_subscription_is_asked_by_the_next_publish_wherever_both_happen(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as scene:
        await scene.share()
        for number in range(30):
            await scene["a"].create(wish(f"s{number}", "//b"))
            assert (await publish(scene, "b", f"d{number}")).matches == number + 1
        for number in range(30):
            await scene["b"].delete(TENANT, f"s{number}")
            assert (await publish(scene, "a", f"e{number}")).matches == 29 - number


async def test_the_same_document_at_two_replicas_is_delivered_once(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as scene:
        await scene.share()
        await scene["a"].create(wish("s", "//b"))
        both = await asyncio.gather(publish(scene, "a", "d"), publish(scene, "b", "d"))
        assert sorted(one.duplicate for one in both) == [False, True]
        await publish(scene, "b", "last")
        assert await pulled(scene, "s", 2) == [(1, "d"), (2, "last")]


async def test_matching_goes_on_while_tokens_move(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as scene:
        await scene.share()
        for number in range(50):
            await scene["a"].create(wish(f"s{number}", "//b"))

        async def move() -> None:
            for turn in range(6):
                await scene.give("matching", range(256), "ab"[turn % 2])

        moving = asyncio.create_task(move())
        n_published = 0
        while not moving.done():
            n_published += 1
            assert (await publish(scene, "ab"[n_published % 2], f"d{n_published}")).matches == 50
        await moving
        assert await pulled(scene, "s7", n_published) == [(n, f"d{n}") for n in range(1, n_published + 1)]


async def test_changes_of_a_subscription_at_two_replicas_wait_for_each_other(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as scene:
        await scene.share()
        made = await scene["a"].create(wish("s", "//b"))
        changes = [scene["ab"[n % 2]].update(TENANT, "s", "", {"labels": {"n": str(n)}}) for n in range(20)]
        changed = await asyncio.gather(*changes)
        assert len({one.revision for one in changed}) == 20
        with pytest.raises(EtagMismatch):
            await scene["b"].update(TENANT, "s", made.etag, {"labels": {}})


async def test_a_lost_peer_is_replaced_and_until_then_documents_are_refused(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b", publish_deadline=0.5) as scene:
        await scene.share()
        await scene["a"].create(wish("s", "//b"))
        await scene.stop("b")
        outcome = (await scene["a"].publish(TENANT, [Document("d", "test", b"<b/>")]))[0]
        assert isinstance(outcome, NoOwner)
        scene.replicas["a"].replica.parts.matching.deadline = 60.0
        publishing = asyncio.create_task(published(scene, "a", "d"))
        await scene.give("matching", range(256), "a")
        assert (await publishing).matches == 1


async def test_a_peer_that_fails_to_answer_is_asked_again(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(postgres_url, "a", "b", publish_deadline=30.0) as scene:
        await scene.share()
        await scene["a"].create(wish("s", "//b"))
        answer, failures = Answering.answer, iter([ValueError("a fault of ours")])

        async def fails_once(answering: Answering, batch: MatchBatch) -> MatchAnswer:
            for failure in failures:
                raise failure
            return await answer(answering, batch)

        monkeypatch.setattr(Answering, "answer", fails_once)
        async with asyncio.timeout(10):
            assert (await publish(scene, "a", "d")).matches == 1
        assert next(failures, None) is None


async def test_sequences_go_on_and_acknowledgements_stay_when_a_subscription_moves(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as scene:
        await scene.share()
        await scene["a"].create(wish("s", "//b"))
        got = []
        for turn in range(6):
            await publish(scene, "ab"[turn % 2], f"d{turn}")
            got += await pulled(scene, "s", 1)
            await scene.give("notifying", range(256), "ab"[turn % 2])
        assert got == [(turn + 1, f"d{turn}") for turn in range(6)]


async def test_who_has_no_store_takes_nothing(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(postgres_url, "a", "b") as scene:
        await scene.share()
        owners = {kind: list(tokens.owners) for kind, tokens in scene.tokens.items()}

        async def failing(*asked: Any) -> Any:
            raise StoreUnavailable("for a moment")

        with monkeypatch.context() as spoiled:
            spoiled.setattr(scene["b"].store._readers, "read", failing)
            for kind in scene.tokens:
                with pytest.raises(StoreUnavailable):
                    await scene.give(kind, range(256), "b")
        assert {kind: tokens.owners for kind, tokens in scene.tokens.items()} == owners


async def test_what_is_not_acknowledged_is_delivered_by_the_next_owner(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as scene:
        await scene.share()
        await scene.give("notifying", range(256), "a")
        await scene["a"].create(wish("s", "//b"))
        for name in ("d1", "d2", "d3"):
            await publish(scene, "a", name)
        out: list[int] = []
        async with asyncio.timeout(10):
            while len(out) < 3:
                out += [message.sequence for message in await scene["a"].pull(TENANT, "s", 10, wait=1.0)]
        await scene["a"].acknowledge(TENANT, "s", [2])
        await scene.give("notifying", range(256), "b")
        assert [(sequence, name) for sequence, name in await pulled(scene, "s", 2)] == [(1, "d1"), (3, "d3")]


async def test_a_stream_is_sent_to_who_delivers_and_told_when_that_changes(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as scene:
        await scene.share()
        await scene.give("notifying", range(256), "a")
        await scene["b"].create(wish("s", "//b"))
        with pytest.raises(DeliveredElsewhere) as caught:
            await scene["b"].attach(TENANT, ["s"])
        assert caught.value.names == {scene.members["a"].address: ["subscriptions/s"]}
        with pytest.raises(WrongReplica) as wrong:
            await scene["b"].pull(TENANT, "s", 1)
        assert wrong.value.address == scene.members["a"].address
        attachment = await scene["a"].attach(TENANT, ["s"], credit=Credit(10, 1 << 20))
        await attachment.next()
        await publish(scene, "b", "d1")
        event = await asyncio.wait_for(attachment.next(), 5)
        assert isinstance(event, Messages)
        assert [message.document.id for message in event.messages] == ["d1"]
        await scene.give("notifying", range(256), "b")
        goodbye = await asyncio.wait_for(attachment.next(), 5)
        assert isinstance(goodbye, Goodbye)
        assert goodbye.reason is GoodbyeReason.MOVED


async def test_filters_of_streams_hear_of_what_other_replicas_accept(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as scene:
        await scene.share()
        stream = await scene["a"].attach_ephemeral(TENANT, [Filter("xpath", "//b")], Credit(10, 1 << 20))
        await stream.next()
        await publish(scene, "b", "d1")
        event = await asyncio.wait_for(stream.next(), 5)
        assert isinstance(event, Messages)
        assert [message.document.id for message in event.messages] == ["d1"]
        await scene["a"].detach(stream)


async def test_a_token_that_is_wanted_again_while_it_leaves_stays_loaded(postgres_url: str) -> None:
    async with cluster(postgres_url, "a") as scene:
        holdings = scene.replicas["a"].replica.parts.holdings
        holdings._linger = 0.0
        await scene.share()
        await scene["a"].create(wish("s", "//b"))
        for _ in range(20):
            await holdings.lost(range(256))
            await asyncio.sleep(0)
            await holdings.prepare(range(256))
            assert holdings.loaded.all()
        await asyncio.gather(*holdings._unloading)
        assert holdings.loaded.all()
        assert (await publish(scene, "a", "d")).matches == 1
        await holdings.lost(range(256))
        await asyncio.gather(*holdings._unloading)
        assert not holdings.loaded.any()
        assert not len(holdings.filters_of(TENANT))


async def test_a_token_whose_loading_has_failed_leaves_nothing_behind(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would tell its filters of changes: they would match what they have wanted once."""
    async with cluster(postgres_url, "a", "b") as scene:
        await scene.give("matching", range(256), "a")
        for number in range(50):
            await scene["a"].create(wish(f"s{number}", "//b"))
        table = scene["b"].store.subscriptions
        of_tokens, asked = table.of_tokens, []

        def failing(tokens: Sequence[int]) -> AsyncIterator[Columns]:
            asked.extend(tokens)
            if len(asked) == 10:
                raise StoreUnavailable("for a moment")
            return of_tokens(tokens)

        monkeypatch.setattr(table, "of_tokens", failing)
        with pytest.raises(StoreUnavailable):
            await scene.tokens["matching"].holders["b"].prepare(range(256))
        for number in range(50):
            await scene["a"].update(TENANT, f"s{number}", "", {"filter": Filter("xpath", "//c")})
        assert (await publish(scene, "b", "d")).matches == 0
        monkeypatch.undo()
        await scene.give("matching", range(256), "b")
        assert (await publish(scene, "b", "e", b"<c/>")).matches == 50


async def test_what_should_not_happen_does_not_end_the_following(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster(postgres_url, "a") as scene:
        await scene.share()
        parts = scene.replicas["a"].replica.parts
        for place in (parts.following, parts.follower):
            goes, failed = place._take_some, asyncio.Event()

            async def failing(goes: Any = goes, failed: asyncio.Event = failed) -> bool:
                if not failed.is_set():
                    failed.set()
                    raise LookupError("a fault in the program")
                return bool(await goes())

            monkeypatch.setattr(place, "_take_some", failing)
            place.wake()
            await failed.wait()
        await scene["a"].create(wish("s", "//b"))
        assert (await publish(scene, "a", "d")).matches == 1
        assert await pulled(scene, "s", 1) == [(1, "d")]


async def test_a_document_that_cannot_be_matched_fails_alone(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster(postgres_url, "a") as scene:
        await scene.share()
        await scene["a"].create(wish("s", "//b"))
        holdings = scene.replicas["a"].replica.parts.holdings

        async def failing(tenant: str, documents: Sequence[Document]) -> tuple[Any, Any]:
            raise LookupError("a fault in the program")

        with monkeypatch.context() as spoiled:
            spoiled.setattr(holdings, "match", failing)
            outcome = (await scene["a"].publish(TENANT, [Document("d", "test", b"<b/>")]))[0]
        assert isinstance(outcome, LookupError)
        assert (await asyncio.wait_for(publish(scene, "a", "e"), 10)).matches == 1


async def test_who_was_replaced_and_does_not_know_it_stops_when_the_store_says_so(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as scene:
        await scene.share()
        await scene.give("notifying", range(256), "a")
        number = (await scene["a"].create(wish("s", "//b"))).number
        await publish(scene, "a", "d1")
        attachment = await scene["a"].attach(TENANT, ["s"], credit=Credit(10, 1 << 20))
        await attachment.next()
        event = await asyncio.wait_for(attachment.next(), 5)
        assert isinstance(event, Messages)
        # b takes over, and a hears nothing of it, as if it had been paused.
        lost = scene.tokens["notifying"].holders.pop("a")
        await scene.give("notifying", range(256), "b")
        attachment.ack([message.message_id for message in event.messages])
        goodbye = await asyncio.wait_for(attachment.next(), 5)
        assert isinstance(goodbye, Goodbye)
        assert goodbye.reason is GoodbyeReason.MOVED
        assert await scene["b"].cursors.stored_floor(number) == 0
        assert await pulled(scene, "s", 1) == [(1, "d1")]
        scene.tokens["notifying"].holders["a"] = lost


async def test_any_replica_reads_what_any_other_has_accepted(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as scene:
        await scene.share()
        for name in ("s1", "s2"):
            await scene["a"].create(wish(name, "//b"))
        for number in range(6):
            await publish(scene, "ab"[number % 2], f"d{number}")
            for name in ("s1", "s2"):
                for reader in "ab":
                    [found] = await scene[reader].ranges(TENANT, [name])
                    page = await scene[reader].read(TENANT, name, number, found.head)
                    assert [one.document.id for one in page.notifications] == [f"d{number}"]
            assert (await scene["b"].tenant_range(TENANT, 0, 0)).through == number + 1
        pages = [await scene[reader].read(TENANT, "-", 0, 6) for reader in "ab"]
        assert pages[0] == pages[1]
        assert [one.sequences for one in pages[0].notifications] == [(n, n) for n in range(1, 7)]


async def test_who_delivers_a_subscription_takes_what_is_acknowledged_by_a_point(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as scene:
        await scene.share()
        numbers = {name: (await scene["a"].create(wish(name, "//b"))).number for name in ("s1", "s2")}
        for number in range(3):
            await publish(scene, "a", f"d{number}")
        owner = {name: scene.tokens["notifying"].owners[number % 256].owner for name, number in numbers.items()}
        assert set(owner.values()) == {"a", "b"}
        mine, other = sorted(owner, key=lambda name: owner[name])
        elsewhere = await scene["a"].acknowledge_through(TENANT, [Mark(mine, 2), Mark(other, 3)])
        assert elsewhere == {scene.members["b"].address: [f"subscriptions/{other}"]}
        await scene["b"].acknowledge_through(TENANT, [Mark(other, 3)])
        assert [await floor_of(scene, "ab"[place], name) for place, name in enumerate([mine, other])] == [2, 3]

        everybody = sorted(member.address for member in scene.members.values())
        assert sorted(await scene["a"].acknowledge_through(TENANT, [Mark("-", 3)])) == everybody
        assert await floor_of(scene, "a", mine) == 2
        await scene["a"].acknowledge_through(TENANT, [Mark("-", 3)], here_only=True)
        assert await floor_of(scene, "a", mine) == 3


async def floor_of(scene: Scene, at: str, name: str) -> int:
    return (await scene[at].standing(await scene[at].get(TENANT, name))).floor
