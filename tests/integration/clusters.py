"""Clusters for tests: real, small and quick; skipped where the parts are missing."""

import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from server.dev_cluster import DevCluster, missing

__all__ = ["clusters", "new_folder", "skip_without_parts"]


def skip_without_parts() -> None:
    if lacking := missing():
        pytest.skip(f"no cluster on this machine: {'; '.join(lacking)}")


@contextlib.contextmanager
def new_folder() -> Iterator[Path]:
    """One that PostgreSQL, which must not be root, can get to."""
    folder = Path(tempfile.mkdtemp(prefix="pathsieve-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.asynccontextmanager
async def clusters(folder: Path, **options: Any) -> AsyncIterator[DevCluster]:
    """A small one, with short sessions."""
    async with DevCluster(folder, **{"replicas": 2, "session_timeout": 2.0, "durable": False, **options}) as cluster:
        yield cluster
