"""What all tests share: where the common data are, and how many random examples to try.

    HYPOTHESIS_PROFILE=thorough make test      twenty times as many
    CI=true make test                          always the same ones

Use `shared` for data that are not ours: without them a test is skipped, visibly. Use `store` or `store_url` for a test
that is to run on SQLite and on PostgreSQL.
"""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import delivery_scene
import pytest
from hypothesis import settings
from pyspark.sql import SparkSession
from xdist.scheduler import LoadScopeScheduling

from server.local_postgres import LocalPostgres
from server.local_zookeeper import LocalZooKeeper
from server.store import Store, open_store
from tests.postgres import new_database, running_postgres
from tests.spark import running_spark
from tests.zookeeper import running_zookeeper

REPOSITORY = Path(__file__).resolve().parent.parent

settings.register_profile("default", deadline=None, max_examples=100, print_blob=True)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "default"))

# Of a job in the background of a script SIGINT is ignored, and all that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class BySharing(LoadScopeScheduling):
    """Of tests that run side by side, those of one file have one process; and those that share something costly too.

    One engine's tests share its kernels, which two processes would both compile; those of Spark share a session.
    """

    def _split_scope(self, nodeid: str) -> str:
        name = Path(nodeid.partition("::")[0]).stem
        return next((what for what, beginnings in SHARED.items() if name.startswith(beginnings)), name)


SHARED = {
    "xpathfilter": ("test_xpathfilter",),
    "boolmatch": ("test_boolmatch", "test_benchmarks"),
    "spark": ("test_spark_sink", "test_spark_source", "test_spark_matching"),
}


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> BySharing:
    return BySharing(config, log)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of this checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of documents, cases and generators that lies beside the checkout."""
    folder = REPOSITORY.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"the data folder {folder} is not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[LocalPostgres]:
    """A PostgreSQL that all tests share; each takes a database of its own from `postgres_url`."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: LocalPostgres) -> str:
    return new_database(postgres)


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[LocalZooKeeper]:
    """A ZooKeeper that all tests share; each takes a root of its own from `new_root`."""
    with running_zookeeper() as server:
        yield server


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A Spark session that all tests share; mark those that use it with `spark`."""
    with running_spark() as session:
        yield session


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new, empty store may be: a test that asks for this runs on both databases."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """An open store, empty, on both databases."""
    opened = await open_store(store_url)
    yield opened
    await opened.close()


@pytest.fixture(params=["memory", "sqlite"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> delivery_scene.Stage:
    """A stage for tests of delivery, over the log in memory and over the real one."""
    if request.param == "memory":
        return delivery_scene.scene
    return partial(delivery_scene.real_scene, tmp_path)
