"""The judge of histories sees what is wrong."""

from collections.abc import Callable

import pytest

from server.documents import Document
from server.subscriptions import Filter
from tests.integration.history import History


def good() -> History:
    """Two subscriptions, three documents; the second subscription came after the first document."""
    history = History()
    history.subscribed("quotes", Filter("xpath", "//quote"))
    for document_id in ("a", "b", "c"):
        if document_id == "b":
            history.subscribed("late", Filter("xpath", "//quote"))
        history.sent(Document(document_id, xml=b"<news/>" if document_id == "c" else b"<quote/>"))
        history.was_accepted(document_id)
    history.delivered("quotes", 1, "a")
    history.delivered("quotes", 2, "b")
    history.delivered("quotes", 2, "b")
    history.delivered("late", 1, "b")
    return history


def lose(history: History) -> None:
    history.deliveries["quotes"].remove((1, "a"))


def unwanted(history: History) -> None:
    history.delivered("quotes", 3, "c")


def invented(history: History) -> None:
    history.delivered("late", 2, "z")


def gap(history: History) -> None:
    history.deliveries["late"] = [(2, "b")]


def two_documents(history: History) -> None:
    history.delivered("quotes", 1, "b")


FAULTS: dict[str, tuple[Callable[[History], None], list[str]]] = {
    "lost": (lose, ["quotes never got a, which was accepted", "quotes has gaps in its sequence numbers: [1]"]),
    "unwanted": (unwanted, ["quotes got c, which it does not want"]),
    "invented": (invented, ["late got z, which was never sent"]),
    "gap": (gap, ["late has gaps in its sequence numbers: [1]"]),
    "ambiguous": (
        two_documents,
        [
            "quotes got different documents under 1: ['a', 'b']",
            "quotes got b under several sequence numbers: [1, 2]",
        ],
    ),
}


def test_a_good_history_has_no_faults() -> None:
    assert good().faults() == []


@pytest.mark.parametrize("spoil, expected", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_seen(spoil: Callable[[History], None], expected: list[str]) -> None:
    history = good()
    spoil(history)
    assert history.faults() == expected


def test_what_was_not_accepted_need_not_arrive() -> None:
    history = good()
    history.sent(Document("d", xml=b"<quote/>"))
    assert history.faults() == []
