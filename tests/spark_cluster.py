"""A real cluster of Spark for tests: a master and workers of one core each, with executors in processes of their own.

The programs are those inside pyspark. Each worker starts an executor for an application; `executors` finds them.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark

from server.free_ports import free_port
from tests.spark import spark_environment

__all__ = ["SparkCluster", "running_spark_cluster"]

HOME = Path(pyspark.__file__).parent
HOST = "127.0.0.1"
N_WORKERS = 2
SECONDS = 60.0
REGISTERED = "Registering worker"
EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class SparkCluster:
    """Where drivers find it, and the group of processes that it is."""

    master: str
    group: int

    def executors(self) -> set[int]:
        """The processes of executors that run now."""
        found = set()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                is_executor = EXECUTOR in (process / "cmdline").read_bytes().split(b"\0")
                if is_executor and os.getpgid(int(process.name)) == self.group:
                    found.add(int(process.name))
        return found


@contextlib.contextmanager
def running_spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    """One that runs until the block ends, and leaves nothing behind."""
    master = f"spark://{HOST}:{free_port()}"
    log = folder / "master.log"
    leader = _launched(folder, log, 0, "master.Master", "--host", HOST, "--port", master.rpartition(":")[2])
    launched = [leader]
    try:
        for number in range(N_WORKERS):
            arguments = "--host", HOST, "--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work"), master
            worker_log = folder / f"worker-{number}.log"
            launched.append(_launched(folder, worker_log, leader.pid, "worker.Worker", *arguments))
        _wait_for_workers(log)
        yield SparkCluster(master, leader.pid)
    finally:
        os.killpg(leader.pid, signal.SIGKILL)
        for process in launched:
            process.wait()


def _launched(folder: Path, log: Path, group: int, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [str(HOME / "bin/spark-class"), f"org.apache.spark.deploy.{name}", "--webui-port", "0", *arguments],
            env=os.environ | spark_environment() | {"SPARK_HOME": str(HOME), "SPARK_DAEMON_MEMORY": "256m"},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=group,
        )


def _wait_for_workers(log: Path) -> None:
    until = time.monotonic() + SECONDS
    while log.read_text().count(REGISTERED) < N_WORKERS:
        assert time.monotonic() < until, log.read_text()[-3000:]
        time.sleep(0.1)
