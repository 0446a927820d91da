"""The compiled index on its way to the workers, and in them.

    driver:  Part ─▶ a file named by the digest of its content ─▶ addArtifacts ─▶ every machine
    worker:  name ─▶ loaded before? ─▶ map it; the kernel keeps one copy for all processes of the machine

A worker lives for many tasks and keeps the last few versions it has met, so it loads each once. A name is a version:
a file is never changed, and what was matched under a name was matched with exactly these subscriptions.
"""

import atexit
import shutil
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark_pathsieve.compiled import CompiledSubscriptions, Part, digest_of
from sievecore.settling import settle
from sievefilters import Extractors
from xpathfilter import DocumentLimits

__all__ = ["ExtractorSettings", "loads", "part_of", "ship"]

KEPT = 8
"""Versions, or shards, that a worker keeps open. What is open and not used costs addresses, not memory."""


@dataclass(frozen=True)
class ExtractorSettings:
    """What is not in the file: extractors, their prefixes, and the limits of documents."""

    expressions: tuple[tuple[str, str], ...] = ()
    namespaces: tuple[tuple[str, str], ...] = ()
    limits: DocumentLimits | None = None

    def extractors(self) -> Extractors:
        return Extractors(dict(self.expressions), dict(self.namespaces), self.limits)


def ship(spark: Any, compiled: CompiledSubscriptions) -> tuple[str, ...]:
    """Bring each part to all machines; the names by which workers find them."""
    return tuple(_ship(spark, part) for part in compiled.parts)


def _ship(spark: Any, part: Part) -> str:
    unnamed = _folder() / "new.sieve"
    part.save(unnamed)
    named = unnamed.with_name(f"pathsieve-{digest_of(unnamed)}.sieve")
    unnamed.replace(named)
    spark.addArtifacts(str(named), file=True)
    return named.name


_folders: list[Path] = []


def _folder() -> Path:
    """One for all files of this process. Executors that come later fetch every file again, so all must stay."""
    if not _folders:
        _folders.append(Path(tempfile.mkdtemp(prefix="pathsieve-spark-")))
        atexit.register(shutil.rmtree, _folders[0], ignore_errors=True)
    return _folders[0]


# In a worker

_parts: "OrderedDict[tuple[str, ExtractorSettings], Part]" = OrderedDict()
_n_loads = [0]


def loads() -> int:
    """How many files this process has loaded so far."""
    return _n_loads[0]


def part_of(name: str, settings: ExtractorSettings) -> Part:
    """A shipped part, loaded the first time that this process asks for it."""
    key = name, settings
    if key not in _parts:
        _parts[key] = _load(name, settings)
        while len(_parts) > KEPT:
            _parts.popitem(last=False)
    _parts.move_to_end(key)
    return _parts[key]


def _load(name: str, settings: ExtractorSettings) -> Part:
    from pyspark import SparkFiles

    _n_loads[0] += 1
    part = Part.load(SparkFiles.get(name), settings.extractors(), settings.limits)
    settle()  # Spark collects garbage after each task: numba's million objects would take 100 ms each time
    return part
