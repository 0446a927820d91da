"""Which policy decides for a message of several subscriptions."""

import numpy as np
import pytest

from server.deliveries import DeliverySettings
from server.deliveries.policies import Patience, PolicyTable, patience
from server.subscriptions import DeliveryPolicy

DEFAULTS = DeliverySettings(ack_deadline=30, max_attempts=10, min_backoff=0.5, max_backoff=300)


def test_zero_means_the_servers_default() -> None:
    assert patience(DeliveryPolicy(), DEFAULTS) == Patience(30, 10, 0.5, 300)
    assert patience(DeliveryPolicy(5, 3, 1, 2), DEFAULTS) == Patience(5, 3, 1, 2)


def test_the_largest_pause_is_never_shorter_than_the_smallest() -> None:
    assert patience(DeliveryPolicy(min_backoff=1000), DEFAULTS).pause(1) == 1000


LEADS = {
    "the_fewest_attempts": ([5, 2, 9], [0, 1, 2], 1),
    "the_first_of_equals": ([5, 2, 2], [0, 1, 2], 1),
    "only_those_of_the_message": ([5, 2, 9], [2, 0], 1),
    "all_the_same": ([4, 4, 4], [2, 1], 0),
}


@pytest.mark.parametrize("attempts, slots, expected", LEADS.values(), ids=LEADS)
def test_who_leads(attempts: list[int], slots: list[int], expected: int) -> None:
    table = PolicyTable()
    for slot, n_attempts in enumerate(attempts):
        table.set(slot, Patience(30, n_attempts, 1, 1))
    place, policy = table.lead(np.array(slots))
    assert place == expected
    assert policy.max_attempts == attempts[slots[expected]]


def test_a_policy_can_be_replaced() -> None:
    table = PolicyTable()
    for slot in range(3):
        table.set(slot, Patience(30, 10, 1, 1))
    table.set(1, Patience(30, 1, 1, 1))
    assert table.lead(np.array([0, 1, 2]))[0] == 1
