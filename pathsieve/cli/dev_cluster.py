"""pathsieve dev-cluster: a whole cluster on this machine, for as long as the command runs."""

import asyncio
import secrets
import signal
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathsieve.cli.exits import OK, REFUSED, reported
from pathsieve.cli.pairs import read_pairs
from pathsieve.cli.printing import complain, counted, note

if TYPE_CHECKING:
    from server.dev_cluster import DevCluster

__all__ = ["dev_cluster"]

HINT = """\
In another terminal:
  export PATHSIEVE_ADDRESS={addresses}
  pathsieve sub add --id first --xpath "//quote[price > 100]"
  pathsieve attach first
  echo "<quote><price>120</price></quote>" | pathsieve publish -
  pathsieve cluster                 # who does what
  kill -9 {pid}                  # {name} dies, the others take over: publish again
Ctrl-C stops everything{and_deletes}."""


def dev_cluster(
    replicas: Annotated[int, typer.Option(help="How many servers.")] = 3,
    folder: Annotated[Path | None, typer.Option(help="Where it keeps all; else a folder that goes away.")] = None,
    zookeepers: Annotated[int, typer.Option(help="How many servers its ZooKeeper has: 1 or 3.")] = 1,
    zookeeper: Annotated[str, typer.Option(help="A ZooKeeper that is there: host:port,host:port")] = "",
    postgres: Annotated[str, typer.Option(help="A PostgreSQL that is there: postgresql://user@host/database")] = "",
    base_port: Annotated[int, typer.Option(help="The first replica's port; the others follow. 0: any.")] = 7443,
    session_timeout: Annotated[float, typer.Option(help="Seconds until a silent replica counts as dead.")] = 6.0,
    replica_settings: Annotated[list[str], typer.Option(help="As in delivery.ack_deadline=5 (repeatable).")] = [],
) -> None:
    """Start a cluster on this machine, with a ZooKeeper and a PostgreSQL of its own, until Ctrl-C.

    It needs Java, PostgreSQL's programs, and `pip install 'pathsieve[cluster,postgres,spark]'`: the jars of ZooKeeper
    come with pyspark. Nothing is left behind, unless there is a --folder; then it can go on there later.

      $ pathsieve dev-cluster

      $ pathsieve dev-cluster --replicas 5 --zookeepers 3 --folder ./cluster --base-port 9000

      $ pathsieve dev-cluster --postgres postgresql://sieve@db/sieve --replica-settings delivery.ack_deadline=5
    """
    given = read_pairs("--replica-settings", replica_settings)
    settings = {name.upper().replace(".", "__"): value for name, value in given.items()}
    with reported():
        raise typer.Exit(_run(replicas, folder, zookeepers, zookeeper, postgres, base_port, session_timeout, settings))


def _run(
    replicas: int,
    folder: Path | None,
    zookeepers: int,
    zookeeper: str,
    postgres: str,
    base_port: int,
    session_timeout: float,
    settings: dict[str, str],
) -> int:
    from server.dev_cluster import DevCluster, missing
    from server.errors import ServerError

    if lacking := missing(not zookeeper, not postgres):
        complain("a cluster needs more than is here:\n" + "\n".join(f"  {what}" for what in lacking))
        return REFUSED
    where = folder or Path(tempfile.gettempdir()) / f"pathsieve-cluster-{secrets.token_hex(4)}"
    try:
        cluster = DevCluster(
            where.absolute(),
            replicas,
            zookeepers,
            session_timeout,
            zookeeper=zookeeper,
            postgres=postgres,
            base_port=base_port,
            settings={"DRAIN_SECONDS": "5", **settings},
            keep=folder is not None,
        )
        return asyncio.run(_serve(cluster, folder is None))
    except ServerError as error:
        complain(str(error))
        return REFUSED


async def _serve(cluster: "DevCluster", goes_away: bool) -> int:
    """Start, tell, and watch until a signal comes. A second signal does not wait for the replicas."""
    signals = _Signals()
    note(f"Starting {counted(len(cluster.replicas), 'replica')} in {cluster.folder}; the first time takes minutes")
    try:
        if not await signals.unless_stopped(cluster.start()):
            return OK
        _greet(cluster, goes_away)
        code = await _watch(cluster, signals)
        note("Stopping; Ctrl-C again does not wait")
        await signals.unless_stopped(cluster.stop())
        return code
    finally:
        await cluster.close()
        signals.let_go()


async def _watch(cluster: "DevCluster", signals: "_Signals") -> int:
    """Say who dies, until a signal comes or no replica is left."""
    logs = {replica.name: replica.log_file for replica in cluster.replicas}
    watching = asyncio.create_task(_tell_deaths(cluster, logs))
    stopped = asyncio.create_task(signals.next())
    await asyncio.wait([watching, stopped], return_when=asyncio.FIRST_COMPLETED)
    for task in (watching, stopped):
        task.cancel()
    await asyncio.gather(watching, stopped, return_exceptions=True)
    return OK if any(replica.is_running for replica in cluster.replicas) else REFUSED


async def _tell_deaths(cluster: "DevCluster", logs: dict[str, Path]) -> None:
    async for name in cluster.deaths():
        note(f"{name} has died" + (f"; its log is {logs[name]}" if name in logs else ""))
        if not any(replica.is_running for replica in cluster.replicas):
            complain("no replica is left")
            return


def _greet(cluster: "DevCluster", goes_away: bool) -> None:
    for replica in cluster.replicas:
        note(f"  {replica.name}  gRPC {replica.address}  HTTP {replica.http_address}  pid {replica.pid}")
    first = cluster.replicas[0]
    note(f"  ZooKeeper  {first.settings['CLUSTER__ZOOKEEPER']}")
    note(f"  PostgreSQL {cluster.postgres.url() if cluster.postgres else 'as given'}")
    note(f"  logs       {first.log_file}, …")
    addresses, and_deletes = ",".join(cluster.addresses), f" and deletes {cluster.folder}" if goes_away else ""
    note(HINT.format(addresses=addresses, pid=first.pid, name=first.name, and_deletes=and_deletes))


class _Signals:
    """Ctrl-C, a request to end, and a terminal that goes away, one after the other."""

    def __init__(self) -> None:
        self._came: asyncio.Queue[signal.Signals] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._loop.add_signal_handler(number, self._came.put_nowait, number)

    def let_go(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._loop.remove_signal_handler(number)

    async def next(self) -> None:
        """Wait for one."""
        await self._came.get()

    async def unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Work until it is done, or a signal comes; whether it is done."""
        working, stopped = asyncio.create_task(work), asyncio.create_task(self.next())
        await asyncio.wait([working, stopped], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            stopped.cancel()
            working.result()
            return True
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return False
