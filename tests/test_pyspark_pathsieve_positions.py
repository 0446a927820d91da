"""Offsets, what lies between them, and how it is shared out: without Spark and without a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_pathsieve.errors import OptionError
from pyspark_pathsieve.options import READ, READ_STREAM, Options
from pyspark_pathsieve.positions import Offset, Span, limited, shared_out, spans_between

GIVEN = {"endpoint": "localhost:7443", "subscription": "ibm"}

READABLE = {
    "one": ("subscription", "ibm", ("ibm",)),
    "several": ("subscription", "ibm, subscriptions/sap", ("ibm", "sap")),
    "all": ("subscription", "-", ("-",)),
    "earliest": ("startingPosition", "Earliest", "earliest"),
    "latest": ("startingPosition", " latest ", "latest"),
    "a_sequence": ("startingPosition", '{"ibm": 17}', {"ibm": 17}),
    "a_full_name": ("startingPosition", '{"subscriptions/ibm": 17}', {"ibm": 17}),
    "a_position_of_the_log": ("startingPosition", '{"-": 4712}', {"-": 4712}),
    "an_end": ("endingPosition", '{"ibm": 40}', {"ibm": 40}),
}


@pytest.mark.parametrize("option, text, expected", READABLE.values(), ids=READABLE)
def test_an_option_is_read(option: str, text: str, expected: object) -> None:
    assert Options(GIVEN | {option: text}, READ)[option] == expected


WRONG = {
    "the_same_twice": ("subscription", "ibm,subscriptions/ibm", "different"),
    "all_and_one": ("subscription", "-,ibm", "or - for all"),
    "an_empty_name": ("subscription", "ibm,,sap", "with commas"),
    "too_many": ("subscription", ",".join(f"s{n}" for n in range(1001)), "1,000"),
    "another_word": ("startingPosition", "oldest", 'earliest, latest, or what to read first as in {"ibm": 17}'),
    "a_list": ("startingPosition", "[17]", "found '\\[17\\]'"),
    "nobody": ("startingPosition", "{}", "found"),
    "a_zero": ("startingPosition", '{"ibm": 0}', "found"),
    "a_truth": ("startingPosition", '{"ibm": true}', "found"),
    "no_json": ("startingPosition", '{"ibm": }', "found"),
    "an_end_at_the_beginning": ("endingPosition", "earliest", "latest, or"),
    "no_documents_at_all": ("docsPerPartition", "0", "1 or more"),
    "a_limit_for_a_batch": ("maxDocsPerTrigger", "5", "is for readStream, not for read"),
}


@pytest.mark.parametrize("option, text, told", WRONG.values(), ids=WRONG)
def test_a_wrong_option_says_what_was_expected(option: str, text: str, told: str) -> None:
    with pytest.raises(OptionError, match=told) as caught:
        Options(GIVEN | {option: text}, READ)
    assert caught.value.option == option


def test_a_subscription_must_be_named() -> None:
    with pytest.raises(OptionError, match="subscription"):
        Options({"endpoint": "localhost:7443"}, READ_STREAM)


def test_between_two_offsets_is_what_the_second_has_more() -> None:
    spans = spans_between({"a": 1, "b": 7, "c": 3}, {"a": 5, "b": 7, "c": 4})
    assert spans == [Span("a", 1, 5), Span("c", 3, 4)]


def test_a_subscription_that_was_made_anew_is_read_from_its_first() -> None:
    assert spans_between({"a": 500}, {"a": 4}) == [Span("a", 1, 4)]


OFFSETS = st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(1, 50), st.integers(0, 200)), min_size=1)


@given(OFFSETS, st.integers(1, 300))
def test_a_limit_is_kept_used_up_and_never_goes_back(offsets: dict[str, tuple[int, int]], limit: int) -> None:
    start: Offset = {name: first for name, (first, _) in offsets.items()}
    end = {name: first + length for name, (first, length) in offsets.items()}
    found = limited(start, end, limit)
    assert found.keys() == end.keys()
    assert all(start[name] <= found[name] <= end[name] for name in end)
    n_documents = sum(found[name] - start[name] for name in end)
    assert n_documents == min(limit, sum(end[name] - start[name] for name in end))


@given(OFFSETS, st.integers(1, 60))
def test_parts_hold_everything_once_and_in_order(offsets: dict[str, tuple[int, int]], size: int) -> None:
    spans = [Span(name, first, first + length) for name, (first, length) in offsets.items() if length]
    parts = shared_out(spans, size)
    read = [(span.name, place) for part in parts for span in part for place in range(span.first, span.end)]
    assert read == [(span.name, place) for span in spans for place in range(span.first, span.end)]
    assert all(sum(map(len, part)) == size for part in parts[:-1])
    assert all(0 < sum(map(len, part)) <= size for part in parts[-1:])


def test_there_are_never_too_many_parts() -> None:
    assert len(shared_out([Span("-", 1, 50_000_001)], 10)) == 10_000
