"""The event loop in the background: it works for other threads, and tells of failures that matter."""

import asyncio
import inspect
import logging
import sys
import threading
from types import FrameType
from typing import Any

import pytest

from pathsieve.background import Background, background


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


async def _soon() -> int:
    await asyncio.sleep(0.001)
    return 7


def _run_interrupted_at(loop: Background, instruction: int) -> bool:
    """Run something, with a Ctrl-C before so manyth instruction; False if it was done before that."""
    n_instructions = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal n_instructions
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_code.co_name != "_remove":  # of a weak reference: raised there, it is lost
            n_instructions += 1
            if n_instructions == instruction:
                raise KeyboardInterrupt
        return count

    work, traced_before = _soon(), sys.gettrace()
    sys.settrace(count)
    try:
        return loop.run(work) != 7
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(traced_before)
        if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
            work.close()


def test_an_interrupt_at_any_moment_is_just_that() -> None:
    loop, instruction = Background(), 1
    while _run_interrupted_at(loop, instruction):
        assert loop.run(_soon()) == 7, "the loop goes on for others"
        instruction += 1
    assert instruction > 20


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
