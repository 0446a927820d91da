"""How kernels are compiled, and when machine code of an earlier run may be used again.

`@kernel` is numba's `njit` with this project's settings (no GIL, numpy's error model) and a cache on
disk that knows more than numba's own. Numba looks only at the file a function stands in; but machine
code has taken in everything the function calls, and every constant it reads:

    xpathfilter/suffix.py ──imports──▶ xpathfilter/layout.py     sievecore/atomics.py
        @kernel match()                    N_COLUMNS = 7             fetch_add()
              └────────── one digest over the bytes of all that is imported ──────────┘

So an edit, a `git pull` or an upgrade of any file on the way recompiles `match`, and an edit elsewhere
does not. Imports are followed through every package that holds kernels, however far.

Where the files live is numba's choice, `NUMBA_CACHE_DIR` included; the caches of other numba functions
are not touched. One file holds one kernel, signature, processor and build setting (so bounds-checked
code has files of its own), is written whole or not at all, and carries a checksum. Processes can share
a cache directory without locks. A cache that cannot be read or written costs time, never a match.
"""

import ast
import functools
import hashlib
import inspect
import itertools
import logging
import os
import pickle
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core import config
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

__all__ = ["brief_kernel", "builder", "kernel"]

logger = logging.getLogger("pathsieve.jit")

BUILD_SETTINGS = ("BOUNDSCHECK", "OPT", "DEBUGINFO_DEFAULT", "ENABLE_AVX", "LOOP_VECTORIZE", "SLP_VECTORIZE")
CHECKSUM_BYTES = hashlib.sha256().digest_size


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on its first call, to machine code that runs without the GIL.

    >>> import numpy as np
    >>> @kernel
    ... def total(values):
    ...     result = 0
    ...     for value in values:
    ...         result += value
    ...     return result
    >>> int(total(np.arange(5)))
    10
    """
    return _compiled(function, reference_counts=False)


def brief_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that keeps the GIL, for work of some ten microseconds.

    Whoever gives the GIL away may have to wait for it afterwards, longer than such work takes.
    """
    return _compiled(function, reference_counts=False, nogil=False)


def builder(function: Callable[..., Any]) -> Any:
    """A kernel that may allocate arrays, for building and not for the hot path."""
    return _compiled(function, reference_counts=True)


def _compiled(function: Callable[..., Any], reference_counts: bool, nogil: bool = True) -> Any:
    """Kernels are inlined into each other, and do not count references.

    A kernel is handed tuples of many arrays. Counted, each array costs two atomic instructions a call: finding
    the position records of a document took 485 us, without counting 140, inlined as well 40.
    """
    compiled = njit(nogil=nogil, error_model="numpy", forceinline=True, _nrt=reference_counts)(function)
    if config.DISABLE_JIT:
        return compiled
    try:
        compiled._cache = KernelCache(function)
    except (RuntimeError, OSError) as problem:  # RuntimeError: numba knows no writable place
        _report_uncached(problem)
    return compiled


class KernelCache(FunctionCache):
    """The compiled forms of one kernel on disk: numba's place and format, this module's key and files."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        source = Path(inspect.getfile(function)).absolute()
        name = f"{source.stem}.{function.__qualname__}".replace("<", "").replace(">", "")
        shipped = source.parent / "__pycache__"
        self._cache_file = KernelFiles(Path(self._cache_path), shipped, name, sources_digest(source))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except OSError as problem:
            _report_uncached(problem)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as problem:
            _report_uncached(problem)


class KernelFiles:
    """The files of one kernel, each called `<kernel>.<digest of sources>.<digest of key>.nbc`.

    Numba's own scheme, an index file that points to numbered files, mixes up two processes that compile
    at the same moment: both take the same number. A name made of the key leaves nothing to dispute.

    `shipped` is read too: what the one who installed the package has warmed up there serves all users.
    """

    def __init__(self, folder: Path, shipped: Path, name: str, sources: str) -> None:
        self.folder, self.shipped, self.name, self.sources = folder, shipped, name, sources

    def load(self, key: Any) -> Any:
        """The compiled kernel of `key`; None when it is not there, or not as it was written."""
        for path in (self.folder / self._file_name(key), self.shipped / self._file_name(key)):
            if path.is_file():
                return _read_compiled(path, key)
        return None

    def save(self, key: Any, compiled: Any) -> None:
        body = dumps((key, compiled))
        temporary = self.folder / f"{self.name}.{uuid.uuid4().hex}.tmp"
        try:
            temporary.write_bytes(hashlib.sha256(body).digest() + body)
            os.replace(temporary, self.folder / self._file_name(key))
        finally:
            temporary.unlink(missing_ok=True)
        self._sweep(older_than=self.sources)

    def flush(self) -> None:
        self._sweep(older_than=None)

    def _file_name(self, key: Any) -> str:
        settings = [str(getattr(config, setting, None)) for setting in BUILD_SETTINGS]
        facts = (str(key), settings, numba.__version__, sys.version, sys.platform)
        return f"{self.name}.{self.sources}.{_digest(repr(facts).encode())}.nbc"

    def _sweep(self, older_than: str | None) -> None:
        for path in self.folder.glob(f"{self.name}.*.nbc"):
            if older_than is None or older_than not in path.name:
                path.unlink(missing_ok=True)


def _read_compiled(path: Path, key: Any) -> Any:
    content = path.read_bytes()
    checksum, body = content[:CHECKSUM_BYTES], content[CHECKSUM_BYTES:]
    if hashlib.sha256(body).digest() != checksum:
        return None
    try:
        stored_key, compiled = pickle.loads(body)
    except (ImportError, AttributeError):  # the class of an argument has moved to another module since
        return None
    return compiled if stored_key == key else None


_import_roots = {__package__: Path(__file__).absolute().parent.parent}  # of each package that holds kernels


def sources_digest(source: Path) -> str:
    """A digest of the file `source` and of all it imports, near or far, from packages that hold kernels."""
    package = _package_parts(source)
    _import_roots.setdefault(package[0] if package else source.stem, source.parents[len(package)])
    reached, waiting = {source}, [source]
    while waiting:
        found = _imported_files(waiting.pop()) - reached
        reached |= found
        waiting += found
    return _digest(b"".join(sorted(_examined(path)[0] for path in reached)))


def _imported_files(source: Path) -> set[Path]:
    names = [name for name in _examined(source)[1] if name.partition(".")[0] in _import_roots]
    paths = [_import_roots[name.partition(".")[0]].joinpath(*name.split(".")) for name in names]
    candidates = [file for path in paths for file in (path.with_suffix(".py"), path / "__init__.py")]
    return {file for file in candidates if file.is_file()}


def _examined(source: Path) -> tuple[bytes, tuple[str, ...]]:
    """The digest of a file's bytes and the dotted names it imports."""
    status = source.stat()
    return _examine(source, status.st_mtime_ns, status.st_size)


@functools.cache
def _examine(source: Path, _modified: int, _size: int) -> tuple[bytes, tuple[str, ...]]:
    content = source.read_bytes()
    return hashlib.sha256(content).digest(), tuple(_imported_names(ast.parse(content), source))


def _imported_names(tree: ast.Module, source: Path) -> Iterator[str]:
    """Every dotted name that may be a module: `from a.b import c` gives both a.b and a.b.c."""
    package = _package_parts(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join([*above, *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _package_parts(source: Path) -> tuple[str, ...]:
    """The packages around a file, outermost first: ("a", "b") for a/b/c.py."""
    inside = itertools.takewhile(lambda folder: (folder / "__init__.py").is_file(), source.parents)
    return tuple(folder.name for folder in inside)[::-1]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]


_report_levels = iter([logging.WARNING])  # the first report is a warning, those after it are for debugging


def _report_uncached(problem: Exception) -> None:
    logger.log(
        next(_report_levels, logging.DEBUG),
        "compiled kernels are not kept, so every start compiles them again (%s); "
        "set NUMBA_CACHE_DIR to a directory that can be written",
        problem,
    )
