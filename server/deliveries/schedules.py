"""When does a digest leave? At the first due time after its oldest document came in.

    documents     a  b          c                 d
    every 60 s    |─────────────|─────────────|─────────────|
    digests                     a b           c             d

Due times are a grid, so they are the same after a restart. Only when the last digest left is worth remembering, for
one that was late.
"""

from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from server.errors import InvalidRequest
from server.subscriptions import Schedule

__all__ = ["check_schedule", "next_due"]


def next_due(schedule: Schedule, came_in: float, anchor: float = 0.0, last: float = 0.0) -> float:
    """The first due time after `came_in`, in seconds since 1970; `every` counts from `anchor`.

    A digest that left late, at `last`, still has its pause before the next one.

    >>> next_due(Schedule(every=60), 119.5)
    120.0
    >>> next_due(Schedule(cron="30 6 * * *"), 0.0) / 3600
    6.5
    """
    if schedule.cron:
        return next(CronSim(schedule.cron, datetime.fromtimestamp(came_in, UTC))).timestamp()
    due = anchor + ((came_in - anchor) // schedule.every + 1) * schedule.every
    return max(due, last + schedule.every)


def check_schedule(schedule: Schedule) -> None:
    """Refuse a schedule that can never be due."""
    if schedule.every < 0:
        raise InvalidRequest("schedule.every", "expected a time of more than 0 s", found=schedule.every)
    if schedule.cron and schedule.every:
        raise InvalidRequest("schedule", "expected `every` or `cron`, not both")
    if schedule.cron:
        _check_cron(schedule.cron)


def _check_cron(expression: str) -> None:
    try:
        CronSim(expression, datetime.now(UTC))
    except CronSimError as error:
        advice = f"expected five fields of cron, as in '30 6 * * 1-5', in UTC; '{expression}': {error}"
        raise InvalidRequest("schedule.cron", advice, found=expression) from error
