"""Subscriptions in the store, on both databases."""

import pytest

from server.documents import Document
from server.errors import AlreadyExists, EtagMismatch, NotFound
from server.store import Store, open_store
from server.store.dead_letters import DeadLetter
from server.subscriptions import DeliveryPolicy, Email, Filter, Schedule, Subscription, Webhook

PLAIN = Filter("xpath", "//a")


def subscription(name: str, tenant: str = "default", wanted: Filter = PLAIN, **options: object) -> Subscription:
    return Subscription(tenant, name, wanted, **options)  # type: ignore[arg-type]


EVERY_KIND = {
    "plain": subscription("s"),
    "namespaces": subscription("s", wanted=Filter("boolean", "XPATH '//n:a'", (("n", "urn:n"),))),
    "labels": subscription("s", labels={"owner": "me", "ü": "\n"}),
    "policy": subscription("s", delivery=DeliveryPolicy(1.5, 3, 0.5, 60.0)),
    "every": subscription("s", schedule=Schedule(every=30.0)),
    "cron": subscription("s", schedule=Schedule(cron="0 * * * *")),
    "webhook": subscription("s", push=Webhook("https://example.com", "secret", {"x": "y"})),
    "email": subscription("s", push=Email(("a@example.com", "b@example.com"), "News")),
}


@pytest.mark.parametrize("given", EVERY_KIND.values(), ids=EVERY_KIND)
async def test_a_subscription_comes_back_as_it_was(store: Store, given: Subscription) -> None:
    (created,) = await store.subscriptions.create([given])
    assert isinstance(created, Subscription)
    assert (created.number, created.revision) == (1, 1)
    assert created.filter == given.filter
    assert (created.labels, created.delivery, created.schedule, created.push) == (
        given.labels,
        given.delivery,
        given.schedule,
        given.push,
    )
    assert await store.subscriptions.get("default", "s") == created


async def test_a_name_that_is_taken_is_refused_alone(store: Store) -> None:
    await store.subscriptions.create([subscription("b")])
    results = await store.subscriptions.create([subscription(name) for name in ("a", "b", "c", "a")])
    assert [type(result) for result in results] == [Subscription, AlreadyExists, Subscription, AlreadyExists]
    assert await store.subscriptions.count("default") == 3


async def test_tenants_have_names_of_their_own(store: Store) -> None:
    results = await store.subscriptions.create([subscription("a"), subscription("a", tenant="other")])
    assert [result.number for result in results if isinstance(result, Subscription)] == [1, 2]
    with pytest.raises(NotFound):
        await store.subscriptions.get("nobody", "a")
    assert await store.subscriptions.counts() == {"default": 1, "other": 1}


async def test_subscriptions_are_counted_by_their_tokens(store: Store) -> None:
    created = await store.subscriptions.create([subscription(f"s{number}") for number in range(300)])
    for loads, token in zip(
        await store.subscriptions.loads(), (lambda one: one.token, lambda one: one.number % 256), strict=True
    ):
        assert len(loads) == 256
        assert loads == [sum(token(one) == place for one in created) for place in range(256)]


async def test_numbers_are_never_used_again(store: Store) -> None:
    await store.subscriptions.create([subscription("a")])
    await store.subscriptions.delete("default", "a")
    (again,) = await store.subscriptions.create([subscription("a")])
    assert isinstance(again, Subscription)
    assert again.number == 2


async def test_an_update_keeps_the_number_and_takes_a_revision(store: Store) -> None:
    (created, _) = await store.subscriptions.create([subscription("a"), subscription("b")])
    assert isinstance(created, Subscription)
    changed = await store.subscriptions.update(subscription("a", labels={"x": "y"}), created.revision)
    assert (changed.number, changed.revision, changed.create_time) == (1, 3, created.create_time)
    with pytest.raises(EtagMismatch, match="its etag is 3, not 1"):
        await store.subscriptions.update(subscription("a"), created.revision)
    assert await store.subscriptions.get("default", "a") == changed


async def test_what_is_unknown_can_be_neither_changed_nor_deleted(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.subscriptions.update(subscription("a"))
    with pytest.raises(NotFound):
        await store.subscriptions.delete("default", "a")
    await store.subscriptions.create([subscription("a")])
    with pytest.raises(EtagMismatch):
        await store.subscriptions.delete("default", "a", expected_revision=9)


async def test_deleting_takes_leftovers_and_dead_letters_along(store: Store) -> None:
    await store.subscriptions.create([subscription("a"), subscription("b")])
    await store.dead_letters.add([DeadLetter(number, 1, Document("d"), 5, 1.0, "no") for number in (1, 2)])
    await store.write(lambda connection: connection.insert("leftovers", ("number", "state"), [(1, "{}"), (2, "{}")]))
    assert (await store.subscriptions.delete("default", "a")).number == 1
    assert await store.dead_letters.counts() == {2: 1}
    assert await store.read(lambda connection: connection.execute("SELECT number FROM leftovers")) == [(2,)]


async def test_pages_are_in_the_order_of_code_points(store: Store) -> None:
    names = ["B", "a", "b", "a-1", "a.2", "A", "a_3", "a~"]
    await store.subscriptions.create([subscription(name) for name in names])
    found, after = [], ""
    while (page := await store.subscriptions.page("default", after, 3)).subscriptions:
        assert page.total == len(names)
        found += [each.id for each in page.subscriptions]
        after = found[-1]
    assert found == sorted(names)


async def test_all_are_loaded_column_by_column(store: Store) -> None:
    given = [*EVERY_KIND.values()]
    await store.subscriptions.create(
        [subscription(f"s{i}", wanted=each.filter, push=each.push) for i, each in enumerate(given)]
    )
    chunks = [columns async for columns in store.subscriptions.scan(chunk=3)]
    assert [len(columns.numbers) for columns in chunks] == [3, 3, 2]
    assert [number for columns in chunks for number in columns.numbers.tolist()] == list(range(1, 9))
    assert [text for columns in chunks for text in columns.expressions] == [each.filter.expression for each in given]
    assert [each for columns in chunks for each in columns.namespaces] == [each.filter.namespaces for each in given]
    assert [has for columns in chunks for has in columns.has_options.tolist()] == [bool(each.push) for each in given]
    assert [each.id async for each in store.subscriptions.with_options()] == ["s6", "s7"]


async def test_changes_since_a_revision_tell_all_and_deletions_too(store: Store) -> None:
    await store.subscriptions.create([subscription(name) for name in "abc"])
    before = (await store.subscriptions.changed_since(0)).revision
    await store.subscriptions.update(subscription("b"))
    await store.subscriptions.delete("default", "a")
    changes = await store.subscriptions.changed_since(before)
    assert ([each.id for each in changes.changed], changes.deleted, changes.revision) == (
        ["b"],
        [(1, "default", "a")],
        before + 2,
    )
    assert await store.subscriptions.forget_deleted(before=1e12) == 1
    assert (await store.subscriptions.changed_since(before)).deleted == []


async def test_some_are_found_by_their_numbers(store: Store) -> None:
    await store.subscriptions.create([subscription(name) for name in "abc"])
    assert {number: each.id for number, each in (await store.subscriptions.by_numbers([3, 1, 99])).items()} == {
        1: "a",
        3: "c",
    }


async def test_they_are_there_after_a_new_start(store_url: str) -> None:
    store = await open_store(store_url)
    await store.subscriptions.create([subscription("a")])
    await store.close()
    store = await open_store(store_url)
    assert (await store.subscriptions.get("default", "a")).number == 1
    await store.close()
