"""PostgreSQL is the truth: what pg_dump has taken while a server was at work is all that another one needs."""

import subprocess
from pathlib import Path

from pathsieve import AsyncClient, Document
from server.local_postgres import LocalPostgres, find_binaries
from tests.postgres import new_database
from tests.servers import running, settings_in


def run(program: str, *arguments: str) -> None:
    binaries = find_binaries()
    assert binaries is not None
    subprocess.run([str(binaries / program), *arguments], check=True, capture_output=True, timeout=60)


async def test_a_dump_of_a_server_at_work_makes_another_one_like_it(tmp_path: Path, postgres: LocalPostgres) -> None:
    url, dump = new_database(postgres), str(tmp_path / "dump")
    async with running(settings_in(tmp_path, store__url=url)) as daemon, AsyncClient(daemon.address) as client:
        await client.subscribe(id="ibm", xpath="//quote")
        for number in range(3):
            await client.publish(Document("<quote/>", id=f"d{number}"))
        await client.acknowledge("ibm", [1])
        run("pg_dump", "--format=custom", f"--file={dump}", url)
        await client.publish(Document("<quote/>", id="after"))
    restored = new_database(postgres)
    run("pg_restore", "--no-owner", f"--dbname={restored}", dump)
    async with running(settings_in(tmp_path, store__url=restored)) as daemon, AsyncClient(daemon.address) as client:
        waiting = await client.pull("ibm", 10)
        assert [(one.sequence, one.document.id) for one in waiting] == [(2, "d1"), (3, "d2")]
        assert (await client.publish(Document("<quote/>", id="d1"))).duplicate
        assert (await client.publish(Document("<quote/>", id="after"))).matches == 1
        assert (await client.get("ibm")).progress.head == 4
