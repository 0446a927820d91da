"""Parties who act on their own end with a fair map, whatever it was before and in whatever order they act."""

import random
from collections import Counter
from collections.abc import Sequence
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.cluster.rules import NOBODY, Party, Step, goal_counts, is_fair, plan

NAMES = ["a", "b", "c", "d", "e", "f"]
GONE = "gone"
WEIGHTS = st.sampled_from([0.1, 0.5, 1.0, 1.0, 1.0, 2.0, 3.7])


@st.composite
def situations(draw: st.DrawFn, weights: st.SearchStrategy[float] = WEIGHTS) -> tuple[list[str], list[Party]]:
    """Any map: tokens of parties, of those who drain, of those who have gone, of nobody."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    draining = draw(st.sets(st.sampled_from(names), max_size=len(names) - 1))
    parties = [Party(name, draw(weights), name in draining) for name in names]
    owners = draw(st.lists(st.sampled_from([NOBODY, GONE, *names]), min_size=1, max_size=64))
    return owners, parties


def apply(owners: list[str], me: str, steps: Sequence[Step]) -> int:
    """What a guarded store does: a step is done if the token still has the owner that was seen."""
    done = [step for step in steps if owners[step.token] == step.owner]
    for step in done:
        owners[step.token] = me
    return len(done)


def settle(owners: list[str], parties: Sequence[Party], rounds: int = 3) -> int:
    """Let everybody act in turn until nobody wants to; return how many steps there were."""
    moves = 0
    for _ in range(rounds):
        moves += sum(apply(owners, party.name, plan(owners, parties, party.name)) for party in parties)
    assert all(plan(owners, parties, party.name) == [] for party in parties)
    return moves


def assert_fair(owners: Sequence[str], parties: Sequence[Party]) -> None:
    """The promise itself, said without the rules."""
    active = {party.name: party.weight for party in parties if not party.draining}
    counts = Counter(owners)
    assert set(counts) <= set(active)
    for name, weight in active.items():
        share = len(owners) * weight / sum(active.values())
        assert floor(share - 1e-9) <= counts[name] <= ceil(share + 1e-9)


@given(situations())
def test_any_map_becomes_fair_when_each_has_acted(situation: tuple[list[str], list[Party]]) -> None:
    owners, parties = situation
    settle(owners, parties, rounds=1)
    assert_fair(owners, parties)
    assert is_fair(owners, parties)


@given(situations(weights=st.just(1.0)))
def test_with_equal_weights_the_richest_and_the_poorest_differ_by_one_at_most(
    situation: tuple[list[str], list[Party]],
) -> None:
    owners, parties = situation
    settle(owners, parties)
    counts = [Counter(owners)[party.name] for party in parties if not party.draining]
    assert max(counts) - min(counts) <= 1


@given(situations(), st.data())
def test_steps_in_any_order_are_each_one_step_less_to_do(
    situation: tuple[list[str], list[Party]], data: st.DataObject
) -> None:
    owners, parties = situation
    left = sum(len(plan(owners, parties, party.name)) for party in parties)
    while left:
        name = data.draw(st.sampled_from([party.name for party in parties]))
        steps = plan(owners, parties, name)
        if not steps:
            name, steps = next((p.name, s) for p in parties if (s := plan(owners, parties, p.name)))
        apply(owners, name, [data.draw(st.sampled_from(steps))])
        now_left = sum(len(plan(owners, parties, party.name)) for party in parties)
        assert now_left == left - 1
        left = now_left
    assert_fair(owners, parties)


@given(situations())
def test_those_who_see_the_same_map_never_collide(situation: tuple[list[str], list[Party]]) -> None:
    owners, parties = situation
    tokens = [step.token for party in parties for step in plan(owners, parties, party.name)]
    assert len(tokens) == len(set(tokens))
    before = list(owners)
    plans = [(party.name, plan(before, parties, party.name)) for party in parties]
    assert sum(apply(owners, name, steps) for name, steps in plans) == len(tokens)
    assert is_fair(owners, parties)


@given(situations(), st.randoms(use_true_random=False))
def test_old_views_and_preferences_only_delay_the_fair_map(
    situation: tuple[list[str], list[Party]], chance: random.Random
) -> None:
    owners, parties = situation
    views = {party.name: list(owners) for party in parties}
    for _ in range(3 * len(parties)):
        name = chance.choice(parties).name
        prefer = chance.sample(range(len(owners)), chance.randint(0, len(owners)))
        apply(owners, name, plan(views[name], parties, name, prefer))
        looking = chance.choice(parties).name
        views[looking] = list(owners)
    settle(owners, parties, rounds=2)
    assert_fair(owners, parties)


@given(situations(weights=st.just(1.0)))
def test_a_party_that_joins_moves_its_share_and_no_more(situation: tuple[list[str], list[Party]]) -> None:
    owners, parties = situation
    settle(owners, parties)
    before = list(owners)
    everybody = [*parties, Party("new")]
    moves = settle(owners, everybody)
    assert moves == Counter(owners)["new"]
    assert all(now in (then, "new") for then, now in zip(before, owners, strict=True))


@given(situations(), WEIGHTS)
def test_a_heavy_party_that_joins_moves_its_share_and_what_rounding_has(
    situation: tuple[list[str], list[Party]], weight: float
) -> None:
    owners, parties = situation
    settle(owners, parties)
    moves = settle(owners, everybody := [*parties, Party("new", weight)])
    assert Counter(owners)["new"] <= moves <= Counter(owners)["new"] + len(parties)
    assert_fair(owners, everybody)


@given(situations())
def test_when_one_leaves_only_its_tokens_move_unless_rounding_has_them(
    situation: tuple[list[str], list[Party]],
) -> None:
    owners, parties = situation
    settle(owners, parties)
    active = [party for party in parties if not party.draining]
    if len(active) == 1:
        return
    had = Counter(owners)[active[0].name]
    rest = [party for party in parties if party is not active[0]]
    assert had <= settle(owners, rest) <= had + len(active)
    assert_fair(owners, rest)


@given(situations())
def test_preferred_tokens_are_taken_first_of_those_that_may_be(situation: tuple[list[str], list[Party]]) -> None:
    owners, parties = situation
    for party in parties:
        steps = plan(owners, parties, party.name)
        again = plan(owners, parties, party.name, prefer=[step.token for step in steps])
        assert again == steps


CASES = {
    "single_acquires_everything": (["", "", ""], "a", [Party("a")], [2, 1, 0]),
    "poor_acquires_before_it_steals": (["a", "a", "a", ""], "b", [Party("a"), Party("b")], [3, 2]),
    "poor_steals_from_the_rich": (["a", "a", "a", "a"], "b", [Party("a"), Party("b")], [3, 2]),
    "rich_waits": (["a", "a", "a", ""], "a", [Party("a"), Party("b")], []),
    "equal_parties_share_what_nobody_has": (["a", "b", "", ""], "b", [Party("a"), Party("b")], [2]),
    "one_token_of_difference_is_fair": (["a", "a", "b"], "b", [Party("a"), Party("b")], []),
    "draining_wants_nothing": (["", ""], "a", [Party("a", draining=True), Party("b")], []),
    "draining_is_stolen_from": (["a", "a"], "b", [Party("a", draining=True), Party("b")], [1, 0]),
    "alone_and_draining_keeps_what_it_has": (["a", "a"], "a", [Party("a", draining=True)], []),
    "gone_is_stolen_from": (["gone"], "b", [Party("b")], [0]),
    "heavy_gets_more": (["a"] * 6, "b", [Party("a", 1.0), Party("b", 2.0)], [5, 4, 3, 2]),
    "a_stranger_plans_nothing": (["", ""], "x", [Party("a")], []),
    "more_parties_than_tokens": (["a"], "b", [Party("a"), Party("b")], []),
}


@pytest.mark.parametrize("owners, me, parties, tokens", CASES.values(), ids=CASES)
def test_plan(owners: list[str], me: str, parties: list[Party], tokens: list[int]) -> None:
    assert [step.token for step in plan(owners, parties, me)] == tokens


def test_what_is_overdue_is_taken_by_anyone() -> None:
    owners, parties = ["a", "a", "", ""], [Party("a"), Party("b")]
    assert plan(owners, parties, "a", overdue=[0, 3]) == [Step(3)]
    assert [step.token for step in plan(owners, parties, "b", overdue=[3])] == [3, 2]
    assert plan(owners, [Party("a", draining=True), Party("b")], "a", overdue=[3]) == []


def test_the_goal_of_256_tokens_is_the_same_wherever_it_is_computed() -> None:
    parties = [Party(name, 0.1) for name in NAMES]
    goal = goal_counts([NOBODY] * 256, parties)
    assert goal == {"a": 43, "b": 43, "c": 43, "d": 43, "e": 42, "f": 42}
    assert goal == goal_counts([NOBODY] * 256, parties[::-1])
