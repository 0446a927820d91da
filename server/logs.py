"""Log lines: plain ones for people, JSON for programs. Nothing that is secret is ever given to a logger.

2026-11-18T13:50:33Z info    pathsieve.daemon: serving on 127.0.0.1:7443
{"time": "2026-11-18T13:50:33.512Z", "level": "info", "logger": "pathsieve.daemon", "message": "serving on …"}
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

from server.settings import Log

__all__ = ["set_up_logging"]


class PlainFormatter(logging.Formatter):
    """A line, and the lines of a traceback if there is one."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802  logging's name
        return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def format(self, record: logging.LogRecord) -> str:
        record.levelname = record.levelname.lower()
        return super().format(record)


class JsonFormatter(logging.Formatter):
    """One object a line."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        told = {"time": time, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False)


def set_up_logging(settings: Log, stream: TextIO | None = None) -> None:
    """Have everything that is logged from now on written to `stream`, or else to standard error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if settings.format == "json" else PlainFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("pathsieve").setLevel(settings.level.upper())
