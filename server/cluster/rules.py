"""Who takes which token: the rules by which replicas share them, without anyone in charge.

    token      0  1  2  3  4  5  6  7            a   b   c              token      0  1  2  3  4  5  6  7
    owner      a  a  a  a  a  a  b  –    has     6   1   0     ──▶      owner      a  a  a  c  c  b  b  b
                                         share   3   3   2              b acquires 7 and steals 5, c steals 3 and 4

These are the published rules of a token distributor. Each party sees the whole map. It is *poor* if it has less than
its share, *rich* if it has more. A poor party **acquires** tokens that nobody has and **steals** from the rich; a party
**releases** only when it leaves. Three things are different here:

- Shares are in proportion to weights. A party's share is rounded down or up, so it ends within one token of it; with
  equal weights the richest and the poorest differ by at most one.
- A draining party has no share. What it has is stolen from it, so that no token is without an owner meanwhile. The
  same goes for an owner who is not a party any more.
- A party plans all of its steps at once, and in such a way that parties who see the same map plan disjoint steps: all
  of them compute the same goal, and each takes its own part of it. So nobody collides, unless somebody's view is old.

The goal keeps what can stay: every step gives a token to someone below the goal, nobody gives below the goal, and
rounding up goes first to those who have that much already. Hence each step that is done is one step less to do, in
whatever order parties act; a fair map has no steps; and a party that joins moves its share and no more.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

__all__ = ["NOBODY", "Party", "Step", "goal_counts", "is_fair", "plan"]

NOBODY = ""


@dataclass(frozen=True, slots=True)
class Party:
    """One who may own tokens, in proportion to its weight."""

    name: str
    weight: float = 1.0
    draining: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """Take `token` from `owner`: an acquisition if that is nobody, a theft otherwise."""

    token: int
    owner: str = NOBODY


def plan(
    owners: Sequence[str],
    parties: Collection[Party],
    me: str,
    prefer: Collection[int] = (),
    overdue: Collection[int] = (),
) -> list[Step]:
    """What `me` should do now, the most urgent first; `owners` has the name of each token's owner.

    Among tokens that are as good as each other those in `prefer` are taken. Nobody else knows of it, so there may be
    two who want the same, and one has to yield. Of the tokens that nobody has, those in `overdue` are taken by anyone:
    whoever should have them does not come.

    >>> plan(["a", "a", "a", ""], [Party("a"), Party("b")], "b")
    [Step(token=3, owner=''), Step(token=2, owner='a')]
    """
    goal = goal_counts(owners, parties)
    if me not in goal:
        return []
    has = Counter(owners)
    wanted = {name: max(0, n - has[name]) for name, n in goal.items()}
    first = sum(n for name, n in wanted.items() if name < me)
    pool = _pool(owners, goal, prefer)
    part = pool[first : first + wanted[me]]
    steps = dict.fromkeys([*(step for step in pool if step.token in prefer), *part])
    rescued = [Step(token) for token in overdue if owners[token] == NOBODY]
    return sorted(dict.fromkeys([*list(steps)[: wanted[me]], *rescued]), key=lambda step: step.owner != NOBODY)


def goal_counts(owners: Sequence[str], parties: Collection[Party]) -> dict[str, int]:
    """How many tokens each party that does not drain should have in the end.

    >>> goal_counts(["a"] * 8, [Party("a"), Party("b", weight=2.0), Party("c", draining=True)])
    {'a': 3, 'b': 5}
    """
    shares = _shares(len(owners), parties)
    has = Counter(owners)
    goal = {name: floor(share) for name, share in shares.items()}
    round_up = sorted(
        (name for name, share in shares.items() if ceil(share) > floor(share)),
        key=lambda name: (has[name] <= goal[name], goal[name] - shares[name], name),
    )
    for name in round_up[: len(owners) - sum(goal.values())] if goal else []:
        goal[name] += 1
    return goal


def is_fair(owners: Sequence[str], parties: Collection[Party]) -> bool:
    """Whether nothing is left to do, by anybody."""
    goal = goal_counts(owners, parties)
    return not goal or Counter(owners) == Counter(goal)


def _shares(n_tokens: int, parties: Collection[Party]) -> dict[str, Fraction]:
    """Exact, so that all replicas round alike."""
    weights = {party.name: Fraction(party.weight) for party in parties if not party.draining}
    total = sum(weights.values(), Fraction(0))
    return {name: n_tokens * weight / total for name, weight in sorted(weights.items())}


def _pool(owners: Sequence[str], goal: Mapping[str, int], prefer: Collection[int]) -> list[Step]:
    """All tokens that should change hands: those that nobody has, and what is above the goal of their owners.

    A rich owner's highest tokens go first, whoever asks and however many have gone already.
    """
    spare = Counter(owners)
    spare.subtract(goal)
    steps = []
    for token in sorted(range(len(owners)), key=lambda token: (token not in prefer, -token)):
        owner = owners[token]
        if owner == NOBODY or spare[owner] > 0:
            spare[owner] -= 1
            steps.append(Step(token, owner))
    return sorted(steps, key=lambda step: (step.owner != NOBODY, step.owner in goal, step.owner, -step.token))
