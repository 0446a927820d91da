"""Arrays in messages are what lists would be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathsieve.v1.delivery_service_pb2 import Message
from server.rpc.packed import FEW, extend

pytestmark = pytest.mark.kernels


@given(st.lists(st.integers(0, 2**32 - 1), max_size=3 * FEW), st.lists(st.integers(0, 2**63 - 1), max_size=3 * FEW))
def test_a_message_has_the_numbers_of_the_arrays(slots: list[int], sequences: list[int]) -> None:
    message = Message(message_id=7)
    extend(message, "slots", np.array(slots, np.uint32))
    extend(message, "sequences", np.array(sequences, np.int64))
    assert message == Message(message_id=7, slots=slots, sequences=sequences)


def test_thousands_are_as_good_as_few() -> None:
    message = Message()
    extend(message, "slots", np.arange(100_000, dtype=np.uint32))
    assert list(message.slots) == list(range(100_000))
