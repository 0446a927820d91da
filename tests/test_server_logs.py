"""Log lines, for people and for programs."""

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from server.logs import set_up_logging
from server.settings import Log


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("pathsieve").setLevel(logging.NOTSET)


def test_plain_lines_are_for_people() -> None:
    stream = io.StringIO()
    set_up_logging(Log(), stream)
    logging.getLogger("pathsieve.daemon").info("serving on %s", "somewhere")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ info    pathsieve.daemon: serving on somewhere\n", stream.getvalue()
    )


def test_json_is_for_programs() -> None:
    stream = io.StringIO()
    set_up_logging(Log(format="json"), stream)
    try:
        raise ValueError("oh")
    except ValueError:
        logging.getLogger("pathsieve.x").exception("failed")
    told = json.loads(stream.getvalue())
    assert (told["level"], told["logger"], told["message"]) == ("error", "pathsieve.x", "failed")
    assert "ValueError: oh" in told["traceback"]


def test_only_what_is_asked_for_is_told() -> None:
    stream = io.StringIO()
    set_up_logging(Log(level="warning"), stream)
    logging.getLogger("pathsieve.x").info("details")
    logging.getLogger("others").info("details")
    assert stream.getvalue() == ""
