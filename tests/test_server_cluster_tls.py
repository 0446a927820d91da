"""Peers that speak TLS: they trust one certificate of them all, or the authority of each one's own."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from server.broker import Published
from server.documents import Document
from server.errors import NoOwner
from server.settings import Security
from server.subscriptions import Filter, Subscription
from tests.certificates import Authority, Pair
from tests.cluster_scene import Scene, cluster

TENANT = "default"
NAMES = "a", "b"

Securities = Mapping[str, Security]


def _secured(pair: Pair, client_ca: Path | None = None) -> Security:
    return Security(certificate=pair.certificate, key=pair.key, client_ca=client_ca)


def _one_for_all(folder: Path) -> Securities:
    pair = Authority(folder).pair("all")
    return {name: _secured(pair) for name in NAMES}


def _own_with_client_ca(folder: Path) -> Securities:
    authority = Authority(folder)
    return {name: _secured(authority.pair(name), authority.certificate) for name in NAMES}


def _own_above_the_authority_s(folder: Path) -> Securities:
    authority = Authority(folder)
    pairs = {name: authority.pair(name) for name in NAMES}
    for pair in pairs.values():
        pair.certificate.write_bytes(pair.certificate.read_bytes() + authority.certificate.read_bytes())
    return {name: _secured(pair) for name, pair in pairs.items()}


def _of_strangers(folder: Path) -> Securities:
    return {name: _secured(Authority(folder, f"authority of {name}").pair(name)) for name in NAMES}


async def _outcome(scene: Scene) -> object:
    """What becomes of a document at one replica that a subscription at the other wants."""
    await scene.give("notifying", range(256), "a")
    await scene.give("matching", range(256), "b")
    await scene["a"].create(Subscription(TENANT, "s", Filter("xpath", "//b")))
    return (await scene["a"].publish(TENANT, [Document("d", "test", b"<b/>")]))[0]


@pytest.mark.parametrize("made", [_one_for_all, _own_with_client_ca, _own_above_the_authority_s])
async def test_peers_ask_each_other(postgres_url: str, tmp_path: Path, made: Callable[[Path], Securities]) -> None:
    async with cluster(postgres_url) as scene:
        for name, security in made(tmp_path).items():
            await scene.start(name, security)
        outcome = await _outcome(scene)
        assert isinstance(outcome, Published)
        assert outcome.matches == 1


async def test_a_peer_of_an_unknown_authority_is_not_asked(postgres_url: str, tmp_path: Path) -> None:
    async with cluster(postgres_url) as scene:
        for name, security in _of_strangers(tmp_path).items():
            await scene.start(name, security, publish_deadline=1.0)
        assert isinstance(await _outcome(scene), NoOwner)
