"""Digests: at most every N seconds, or at the times of a cron expression."""

from datetime import UTC, datetime

import pytest
from delivery_scene import PLENTY, START, Scene, Stage, messages, subscription

from server.deliveries import Attachment, Credit
from server.deliveries.schedules import check_schedule, next_due
from server.errors import InvalidRequest
from server.subscriptions import Schedule


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


DUE = {
    "every_at_the_next_point_of_the_grid": (Schedule(every=60), at("2026-01-01T10:00:30"), at("2026-01-01T10:01:00")),
    "a_point_itself_is_past": (Schedule(every=60), at("2026-01-01T10:01:00"), at("2026-01-01T10:02:00")),
    "cron": (Schedule(cron="30 6 * * 1-5"), at("2026-01-02T07:00:00"), at("2026-01-05T06:30:00")),
    "cron_itself_is_past": (Schedule(cron="0 * * * *"), at("2026-01-01T10:00:00"), at("2026-01-01T11:00:00")),
}


@pytest.mark.parametrize("schedule, came_in, expected", DUE.values(), ids=DUE)
def test_when_a_digest_is_due(schedule: Schedule, came_in: float, expected: float) -> None:
    assert next_due(schedule, came_in) == expected


BAD = {
    "negative": (Schedule(every=-1), "more than 0"),
    "both": (Schedule(every=60, cron="* * * * *"), "not both"),
    "not_cron": (Schedule(cron="every day"), "five fields"),
    "never": (Schedule(cron="0 0 30 2 *"), "five fields"),
}


@pytest.mark.parametrize("schedule, expected", BAD.values(), ids=BAD)
def test_a_schedule_that_cannot_be_is_refused(schedule: Schedule, expected: str) -> None:
    with pytest.raises(InvalidRequest, match=expected):
        check_schedule(schedule)


GRID = START // 60 * 60 + 60


async def attach(stage: Scene, credit: Credit = PLENTY, **schedules: Schedule) -> Attachment:
    wanted = [subscription(int(name[1:]), schedule=schedule) for name, schedule in schedules.items()]
    stream = await stage.deliveries.attach("default", wanted, credit=credit)
    await stream.next()
    await stage.settle()
    return stream


async def taken(stream: Attachment) -> list[str]:
    """The documents that the stream has now, acknowledged."""
    found = await messages(stream)
    stream.ack([message.message_id for message in found])
    return [message.document.id for message in found]


async def test_what_came_in_leaves_together_when_it_is_due(scene: Stage) -> None:
    async with scene() as stage:
        stream = await attach(stage, s1=Schedule(every=60), s2=Schedule())
        await stage.publish(1)
        await stage.publish(1, 2)
        assert await taken(stream) == ["d2"]
        await stage.pass_time(GRID - stage.now + 0.1)
        assert await taken(stream) == ["d1", "d2"]
        await stage.publish(1)
        await stage.pass_time(59)
        assert await taken(stream) == []
        await stage.pass_time(1)
        assert await taken(stream) == ["d3"]


async def test_what_waited_while_nobody_was_attached_is_due_when_it_would_have_been(scene: Stage) -> None:
    async with scene() as stage:
        await stage.publish(1)
        stream = await attach(stage, s1=Schedule(every=60))
        assert await taken(stream) == []
        await stage.pass_time(GRID - stage.now + 0.1)
        assert await taken(stream) == ["d1"]
        await stream.close()
        await stage.publish(1)
        stage.now += 600
        stream = await attach(stage, s1=Schedule(every=60))
        await stage.pass_time(0.1)
        assert await taken(stream) == ["d2"]


async def test_what_comes_in_while_a_digest_is_being_taken_is_for_the_next_one(scene: Stage) -> None:
    async with scene() as stage:
        stream = await attach(stage, Credit(1, 1 << 20), s1=Schedule(every=60))
        await stage.publish(1)
        await stage.publish(1)
        await stage.pass_time(GRID - stage.now + 0.1)
        assert await taken(stream) == ["d1"]
        await stage.publish(1)
        stream.grant(100, 0)
        await stage.settle()
        assert await taken(stream) == ["d2"]
        await stage.pass_time(60)
        assert await taken(stream) == ["d3"]


async def test_another_schedule_holds_at_once(scene: Stage) -> None:
    async with scene() as stage:
        stream = await attach(stage, s1=Schedule(every=3600))
        await stage.publish(1)
        assert await taken(stream) == []
        stage.deliveries.subscription_updated(subscription(1))
        assert await taken(stream) == ["d1"]


async def test_a_missed_cron_time_is_made_up_for(scene: Stage) -> None:
    async with scene() as stage:
        stage.now = at("2026-01-01T06:00:00")
        await stage.publish(1)
        stage.now = at("2026-01-01T07:00:00")
        stream = await attach(stage, s1=Schedule(cron="30 6 * * *"))
        await stage.pass_time(0.1)
        assert await taken(stream) == ["d1"]
        await stage.publish(1)
        await stage.pass_time(23 * 3600)
        assert await taken(stream) == []
        await stage.pass_time(1800)
        assert await taken(stream) == ["d2"]
