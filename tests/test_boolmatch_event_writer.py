"""Dicts of numbers are written all at once, and as if they had been written one by one."""

from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boolmatch.deciders import Deciders
from boolmatch.event_writer import Event, write_events
from boolmatch.names import AttributeNames
from boolmatch.values import EXACT_INTEGERS

NAMES = AttributeNames(["a", "b", "c"])

NUMBERS = st.one_of(
    st.integers(-EXACT_INTEGERS - 2, EXACT_INTEGERS + 2),
    st.floats(),
    st.sampled_from([0, -0.0, EXACT_INTEGERS, EXACT_INTEGERS + 1, -EXACT_INTEGERS - 1, 10**400, True, "x", None]),
)
EVENTS = st.lists(st.dictionaries(st.sampled_from("abcd"), NUMBERS, max_size=4), max_size=5)


@given(EVENTS)
def test_dicts_are_written_as_other_mappings_are(events: list[Event]) -> None:
    flat, refused = write_events(events, NAMES, Deciders(NAMES), ())
    one_by_one = write_events([MappingProxyType(event) for event in events], NAMES, Deciders(NAMES), ())
    assert [part.tolist() for part in flat[:2]] == [part.tolist() for part in one_by_one[0][:2]]
    assert flat.text.tolist() == one_by_one[0].text.tolist()
    assert {place: str(error) for place, error in refused.items()} == {
        place: str(error) for place, error in one_by_one[1].items()
    }


@pytest.mark.parametrize("bad", [float("nan"), 10**400, EXACT_INTEGERS + 1])
def test_one_number_that_is_refused_spoils_no_other_event(bad: float) -> None:
    flat, refused = write_events([{"a": 1}, {"a": bad}, {"b": 2}], NAMES, Deciders(NAMES), ())
    assert list(refused) == [1]
    assert np.array_equal(flat.pairs["low"], [1, 2])
