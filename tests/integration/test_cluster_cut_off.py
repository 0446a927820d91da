"""A replica that has lost the store gives its tokens to the others; when it has the store again it gets its share."""

import asyncio

import pytest

from pathsieve import AsyncClient
from pathsieve.errors import DeadlineExceeded, Unavailable
from tests.integration.clusters import new_folder
from tests.integration.wired_cluster import WiredCluster, wired_clusters

SESSION = 2.0
SECONDS = 120.0


async def accepted(client: AsyncClient, document_id: str) -> int:
    """How many want the document, when it has been accepted at last."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                return (await client.publish("<quote/>", id=document_id)).matches
            except (Unavailable, DeadlineExceeded):
                await asyncio.sleep(0.1)


async def shares(wired: WiredCluster, client: AsyncClient) -> dict[str, int]:
    return dict((await client.cluster()).owned("matching"))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("cluster_parts")
async def test_a_replica_without_the_store_holds_up_nobody_for_long() -> None:
    with new_folder() as folder:
        async with wired_clusters(folder / "cluster", SESSION, {}) as wired:
            first, second, _ = wired.addresses
            cut_off = wired.cluster.replicas[0].name
            async with AsyncClient(second, timeout=30.0) as client:
                await client.subscribe(id="before", xpath="//quote")
                wired.stores[cut_off].cut()
                await client.subscribe(id="after", xpath="//quote")  # the one that is cut off never hears of it
                assert await accepted(client, "d1") == 2
                async with asyncio.timeout(SECONDS):
                    while cut_off in await shares(wired, client):
                        await asyncio.sleep(0.1)
                wired.stores[cut_off].heal()
                async with asyncio.timeout(SECONDS):
                    while len(await shares(wired, client)) < 3:
                        await asyncio.sleep(0.1)
            async with AsyncClient(first) as client:
                assert await accepted(client, "d2") == 2
