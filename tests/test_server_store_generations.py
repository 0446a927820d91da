"""Generations in the store: an old owner's write is refused, whatever it believes."""

import pytest

from server.errors import Fenced
from server.store import Store
from server.store.databases import Connection
from server.store.generations import check


async def write(store: Store, generations: dict[int, int]) -> None:
    """A write by somebody who believes to have these."""

    def checked(connection: Connection) -> None:
        check(connection, "notifying", generations)

    await store.write(checked)


async def test_the_newest_owner_may_write(store: Store) -> None:
    await store.generations.claim("notifying", {3: 1, 4: 1}, "a")
    await write(store, {3: 1, 4: 1})


async def test_an_older_owner_is_refused_and_told_which_tokens(store: Store) -> None:
    await store.generations.claim("notifying", {3: 1, 4: 1}, "a")
    await store.generations.claim("notifying", {4: 2}, "b")
    with pytest.raises(Fenced) as caught:
        await write(store, {3: 1, 4: 1})
    assert list(caught.value.tokens) == [4]


async def test_a_claim_that_comes_too_late_is_refused_and_changes_nothing(store: Store) -> None:
    await store.generations.claim("notifying", {4: 2}, "b")
    with pytest.raises(Fenced):
        await store.generations.claim("notifying", {3: 1, 4: 1}, "a")
    await write(store, {4: 2})
    with pytest.raises(Fenced):
        await write(store, {3: 1})


async def test_a_claim_may_be_repeated(store: Store) -> None:
    await store.generations.claim("notifying", {4: 2}, "b")
    await store.generations.claim("notifying", {4: 2}, "b")
    await write(store, {4: 2})


async def test_who_never_had_a_token_is_refused(store: Store) -> None:
    with pytest.raises(Fenced):
        await write(store, {0: -1})


async def test_kinds_have_nothing_to_do_with_each_other(store: Store) -> None:
    await store.generations.claim("matching", {4: 7}, "a")
    await store.generations.claim("notifying", {4: 1}, "b")
    await write(store, {4: 1})
