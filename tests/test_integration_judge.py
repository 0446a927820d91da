"""The judge of a cluster's history sees what is wrong, and only that."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.judge import Judge, judged

QUOTES, NEWS = ("xpath", "//quote"), ("xpath", "//news")
XML = {"q": "<quote/>", "n": "<news/>"}

Event = dict[str, Any]
Story = list[Event]


def change(what: str, state: str, name: str, filter: tuple[str, str] | None = None) -> Event:
    return {"what": what, "state": state, "subscription": name, "filter": filter}


def begun(document: str) -> Event:
    """The first letter of a document's name says what it is."""
    return {"what": "publish", "state": "begun", "document": document, "xml": XML[document[0]], "attributes": {}}


def done(document: str, ok: bool = True, duplicate: bool = False) -> Event:
    return {"what": "publish", "state": "done", "document": document, "ok": ok, "duplicate": duplicate}


def got(name: str, sequence: int, document: str) -> Event:
    return {"what": "delivery", "subscription": name, "sequence": sequence, "document": document}


def token(generation: int, owner: str, seen_in: str = "ZooKeeper") -> Event:
    facts = {"kind": "matching", "token": 5, "generation": generation, "owner": owner}
    return {"what": "token", "seen_in": seen_in, **facts}


def published(*documents: str) -> Story:
    return [event for document in documents for event in (begun(document), done(document))]


def made(name: str, filter: tuple[str, str] = QUOTES) -> Story:
    return [change("create", "begun", name, filter), change("create", "done", name, filter)]


SETTLED: Event = {"what": "settled"}
S = made("s")
DELETING = change("delete", "begun", "s")
DELETED = [DELETING, change("delete", "done", "s")]
TO_NEWS = [change("update", "begun", "s", NEWS), change("update", "done", "s", NEWS)]

GOOD: dict[str, Story] = {
    "wanted": [*S, *published("q1", "n1"), got("s", 1, "q1"), SETTLED],
    "again": [*S, *published("q1"), got("s", 1, "q1"), got("s", 1, "q1"), SETTLED],
    "before it is accepted": [*S, begun("q1"), got("s", 1, "q1"), done("q1"), SETTLED],
    "not accepted": [*S, begun("q1"), done("q1", ok=False), SETTLED],
    "not accepted, and there long after": [
        *S, begun("q1"), done("q1", ok=False), *published("q2"), got("s", 1, "q2"), got("s", 2, "q1"), SETTLED,
    ],
    "at the second attempt": [
        *S, begun("q1"), done("q1", ok=False), begun("q1"), done("q1", duplicate=True), got("s", 1, "q1"), SETTLED,
    ],
    "while it is made, not met": [S[0], begun("q1"), S[1], done("q1"), SETTLED],
    "while it is made, met": [S[0], begun("q1"), S[1], done("q1"), got("s", 1, "q1"), SETTLED],
    "while it is changed, met as the old one": [
        *S, TO_NEWS[0], *published("q1"), TO_NEWS[1], got("s", 1, "q1"), SETTLED,
    ],
    "while it is changed, met as the new one": [
        *S, TO_NEWS[0], *published("q1"), TO_NEWS[1], *published("n1"), got("s", 1, "n1"), SETTLED,
    ],
    "while it is deleted, met": [*S, DELETING, *published("q1"), got("s", 1, "q1"), DELETED[1], SETTLED],
    "deleted before it came": [*S, *published("q1"), *DELETED, SETTLED],
    "deleted with a hole for what did not come": [
        *S, *published("q1"), *published("q2"), got("s", 2, "q2"), *DELETED, SETTLED,
    ],
    "a token that moves": [token(1, "a"), token(2, "b"), token(2, "b", "the store"), token(3, "a")],
    "a store that is behind": [token(2, "b"), token(1, "a", "the store"), token(2, "b", "the store")],
    "a calm": [token(1, "a"), {"what": "calm", "state": "begun"}, token(1, "a"), {"what": "calm", "state": "done"}],
}  # fmt: skip

BAD: dict[str, tuple[Story, str]] = {
    "lost": ([*S, *published("q1"), SETTLED], "s never got ['q1'], which it wanted and which were accepted"),
    "lost at another's delivery": (
        [*S, *made("t"), *published("q1"), got("s", 1, "q1"), SETTLED],
        "t never got ['q1'], which it wanted and which were accepted",
    ),
    "lost although it was sent again": (
        [*S, begun("q1"), done("q1", ok=False), begun("q1"), done("q1"), SETTLED],
        "s never got ['q1'], which it wanted and which were accepted",
    ),
    "lost though both versions want it": (
        [*S, change("update", "begun", "s", QUOTES), *published("q1"), change("update", "done", "s", QUOTES), SETTLED],
        "s never got ['q1'], which it wanted and which were accepted",
    ),
    "late": (
        [*S, *published("q1"), SETTLED, got("s", 1, "q1"), SETTLED],
        "s never got ['q1'], which it wanted and which were accepted",
    ),
    "lost before it was deleted": (
        [*S, *published("q1"), *published("q2"), got("s", 1, "q2"), *DELETED, SETTLED],
        "s, now deleted, never got ['q1'], and has only 0 holes for them",
    ),
    "unwanted": (
        [*S, *published("n1"), got("s", 1, "n1"), SETTLED],
        "s got n1, which it did not want in any version that it may have met",
    ),
    "wanted no more": (
        [*S, *TO_NEWS, *published("q1"), got("s", 1, "q1"), SETTLED],
        "s got q1, which it did not want in any version that it may have met",
    ),
    "not wanted yet": (
        [*S, *published("n1"), *TO_NEWS, got("s", 1, "n1"), SETTLED],
        "s got n1, which it did not want in any version that it may have met",
    ),
    "before it was made": (
        [*published("q1"), *S, got("s", 1, "q1"), SETTLED],
        "s got q1, which it did not want in any version that it may have met",
    ),
    "after it was deleted": (
        [*S, *DELETED, *published("q1"), got("s", 1, "q1"), SETTLED],
        "s got q1, which it did not want in any version that it may have met",
    ),
    "invented": ([*S, got("s", 1, "z"), SETTLED], "s got z, which was never sent"),
    "somebody else's": ([*published("q1"), got("s", 1, "q1")], "s, which was never made, got q1"),
    "twice": (
        [*S, *published("q1"), got("s", 1, "q1"), got("s", 2, "q1"), SETTLED],
        "s got q1 under several sequence numbers: [1, 2]",
    ),
    "ambiguous": (
        [*S, *published("q1", "q2"), got("s", 1, "q1"), got("s", 2, "q2"), got("s", 2, "q1"), SETTLED],
        "s got different documents under 2: ['q1', 'q2']",
    ),
    "gap": ([*S, *published("q1"), got("s", 2, "q1"), SETTLED], "s has gaps in its sequence numbers: [1]"),
    "taken for a repetition": (
        [*S, begun("n1"), done("n1", duplicate=True), SETTLED], "n1 was sent once, and was taken for a repetition"
    ),
    "generation goes back": (
        [token(2, "a"), token(1, "a")], "matching token 5 went from generation 2 back to 1 in ZooKeeper"
    ),
    "two owners": ([token(2, "a"), token(2, "b")], "matching token 5 has two owners in generation 2: a and b"),
    "two owners in two places": (
        [token(2, "a"), token(2, "b", "the store")], "matching token 5 has two owners in generation 2: a and b"
    ),
    "moves in a calm": (
        [token(2, "a"), {"what": "calm", "state": "begun"}, token(3, "b")],
        "matching token 5 went to b in generation 3 during calm",
    ),
    "moves in an outage": (
        [token(2, "a"), {"what": "outage", "state": "begun"}, token(3, "a")],
        "matching token 5 went to a in generation 3 during outage",
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", GOOD.values(), ids=GOOD)
def test_what_may_happen_is_no_fault(story: Story) -> None:
    assert judged(map(json.dumps, story)).faults == []


@pytest.mark.parametrize("story, expected", BAD.values(), ids=BAD)
def test_a_fault_is_seen(story: Story, expected: str) -> None:
    assert expected in judged(map(json.dumps, story)).faults


@pytest.mark.parametrize(
    "tell, owed",
    [
        (lambda judge: judge.take(begun("q1")), 0),
        (lambda judge: [judge.take(event) for event in published("q1")], 1),
        (lambda judge: [judge.take(event) for event in [*published("q1"), got("s", 1, "q1")]], 0),
        (lambda judge: [judge.take(event) for event in [*published("q1"), *DELETED]], 0),
        (lambda judge: [judge.take(event) for event in [*published("q1"), SETTLED]], 0),
    ],
    ids=["sent", "accepted", "delivered", "deleted", "given up"],
)
def test_it_knows_at_any_time_how_much_is_owed(tell: Callable[[Judge], object], owed: int) -> None:
    judge = Judge()
    for event in S:
        judge.take(event)
    tell(judge)
    assert judge.n_owed == owed
