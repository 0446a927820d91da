"""The event loop in the background: it works for other threads, and tells of failures that matter."""

import logging
import threading

import pytest

from pathsieve.background import background


async def _thread_name() -> str:
    return threading.current_thread().name


def test_work_is_done_in_a_thread_of_its_own() -> None:
    assert background().run(_thread_name()) == "pathsieve"
    assert background() is background()


def test_whoever_is_on_that_thread_is_told_to_use_the_other_client() -> None:
    async def nested() -> str:
        return background().run(_thread_name())

    with pytest.raises(RuntimeError, match="use AsyncClient there"):
        background().run(nested())


class FakeHandle:
    """What a callback of gRPC's looks like in a report."""

    def __repr__(self) -> str:
        return "<Handle PollerCompletionQueue._handle_events()>"


REPORTS = {
    "another_loop_was_quicker": (BlockingIOError(), FakeHandle(), False),
    "another_failure_of_grpc": (ValueError(), FakeHandle(), True),
    "a_failure_of_somebody_else": (BlockingIOError(), None, True),
}


@pytest.mark.parametrize("error, handle, is_told", REPORTS.values(), ids=REPORTS)
def test_failures_are_told_but_for_one(
    error: Exception, handle: object, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    loop = background().loop
    with caplog.at_level(logging.ERROR, "asyncio"):
        loop.call_exception_handler({"message": "a callback failed", "exception": error, "handle": handle})
    assert bool(caplog.records) == is_told
