"""A bucket of requests for each tenant."""

import pytest

from server.errors import LimitExceeded
from server.rates import Rates


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_second_s_worth_may_come_at_once_and_no_more() -> None:
    rates = Rates(2, Clock())
    rates.take("acme")
    rates.take("acme")
    with pytest.raises(LimitExceeded) as caught:
        rates.take("acme")
    assert caught.value.facts == {"limit": "requests_per_second", "allowed": 2, "found": 3, "retry_after": 0.5}


def test_as_time_goes_by_more_may_come() -> None:
    clock = Clock()
    rates = Rates(2, clock)
    rates.take("acme")
    rates.take("acme")
    clock.now = 0.5
    rates.take("acme")


def test_tenants_have_nothing_to_do_with_each_other() -> None:
    rates = Rates(1, Clock())
    rates.take("acme")
    rates.take("other")


def test_less_than_one_a_second_is_still_one_at_first() -> None:
    rates = Rates(0.1, Clock())
    rates.take("acme")
    with pytest.raises(LimitExceeded) as caught:
        rates.take("acme")
    assert caught.value.retry_after == pytest.approx(10)


def test_without_a_limit_all_may_come() -> None:
    rates = Rates(0, Clock())
    for _ in range(10_000):
        rates.take("acme")
