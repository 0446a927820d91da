"""The cluster from outside: what the client and the command line tell of it, and what they ask of it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from grpc import StatusCode
from typer.testing import CliRunner, Result

from pathsieve import Client, Cluster
from pathsieve.cli import app
from pathsieve.errors import NotInCluster, Unauthenticated
from pathsieve.v1 import cluster_service_pb2 as pb
from pathsieve.v1 import cluster_service_pb2_grpc
from tests.faces import run
from tests.scripted_server import ScriptedServer, abort

KINDS = pb.TOKEN_KIND_MATCHING, pb.TOKEN_KIND_NOTIFYING


def cluster_of(owners: str, draining: str = "") -> pb.Cluster:
    """Replicas named by letters; owners[n] has token n of both kinds, and - is nobody.

    Token n stands for n subscriptions.
    """
    found = pb.Cluster(replica="a", session=pb.SESSION_STATE_CONNECTED)
    for name in sorted(set(owners) - {"-"}):
        found.replicas.add(name=name, address=f"{name}.example:7443", weight=1, draining=name in draining)
    for kind in KINDS:
        for token, owner in enumerate(owners):
            made = found.tokens.add(kind=kind, token=token, owner=owner.strip("-"), generation=1, subscriptions=token)
            made.since.FromSeconds(1_700_000_000)
    return found


@dataclass
class ScriptedCluster(ScriptedServer, cluster_service_pb2_grpc.ClusterServiceServicer):
    """`looks` are what it has to tell, one after the other; None breaks the stream."""

    looks: list[pb.Cluster | None] = field(default_factory=list)
    drained: list[tuple[str, bool]] = field(default_factory=list)

    def add_more(self) -> None:
        cluster_service_pb2_grpc.add_ClusterServiceServicer_to_server(self, self.server)

    async def GetCluster(self, request: Any, context: Any) -> pb.GetClusterResponse:  # noqa: N802
        await self.check(context)
        if not self.looks:
            await abort(context, StatusCode.FAILED_PRECONDITION, "NOT_IN_CLUSTER", "it stands alone")
        now = self.looks[0] if len(self.looks) == 1 else self.looks.pop(0)
        return pb.GetClusterResponse(cluster=now)

    async def WatchCluster(self, request: Any, context: Any) -> AsyncIterator[pb.WatchClusterResponse]:  # noqa: N802
        await self.check(context)
        while self.looks:
            if (now := self.looks.pop(0)) is None:
                await abort(context, StatusCode.UNAVAILABLE, "DRAINING", "it stops")
            yield pb.WatchClusterResponse(cluster=now)
        await asyncio.Event().wait()

    async def DrainReplica(self, request: Any, context: Any) -> pb.DrainReplicaResponse:  # noqa: N802
        await self.check(context)
        self.drained.append((request.replica, request.undo))
        return pb.DrainReplicaResponse()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedCluster]:
    server = ScriptedCluster()
    server.address = run(server.start())
    monkeypatch.setenv("PATHSIEVE_ADDRESS", server.address)
    yield server
    run(server.stop())


@pytest.fixture
def client(server: ScriptedCluster) -> Iterator[Client]:
    with Client(server.address, patience=5) as client:
        yield client


def call(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["cluster", *arguments])
    assert result.exit_code == code, result.output
    return result


# -- the client ------------------------------------------------------------------------------------


def test_who_owns_what(server: ScriptedCluster, client: Client) -> None:
    server.looks = [cluster_of("aab-", draining="b")]
    seen = client.cluster()
    assert (seen.replica, seen.session) == ("a", "connected")
    assert [(one.name, one.address, one.draining) for one in seen.replicas] == [
        ("a", "a.example:7443", False),
        ("b", "b.example:7443", True),
    ]
    assert seen.owned("matching") == {"a": 2, "b": 1, "": 1}
    assert seen.loads("notifying") == {"a": 1, "b": 2, "": 3}
    assert seen.tokens[2].since is not None


def test_a_server_that_stands_alone_is_no_cluster(server: ScriptedCluster, client: Client) -> None:
    with pytest.raises(NotInCluster):
        client.cluster()


def test_changes_are_watched_through_a_break(server: ScriptedCluster, client: Client) -> None:
    server.looks = [cluster_of("aa"), None, cluster_of("ab")]
    changes: Iterator[Cluster] = client.watch_cluster()
    assert [next(changes).owned("matching"), next(changes).owned("matching")] == [{"a": 2}, {"a": 1, "b": 1}]
    changes.close()  # type: ignore[attr-defined]


def test_who_may_not_watch_is_told(server: ScriptedCluster) -> None:
    server.token = "right"
    with Client(server.address, token="wrong", patience=0) as client, pytest.raises(Unauthenticated):
        next(client.watch_cluster())


def test_a_replica_is_drained_and_taken_back(server: ScriptedCluster, client: Client) -> None:
    client.drain("b")
    client.drain("b", undo=True)
    assert server.drained == [("b", False), ("b", True)]


# -- the command line ------------------------------------------------------------------------------


def test_status_has_a_line_for_each_replica(server: ScriptedCluster) -> None:
    server.looks = [cluster_of("aab", draining="b")]
    shown = call("status")
    head, _, first, second = [line.split() for line in shown.stdout.splitlines()]
    assert head == ["replica", "address", "weight", "state", "matching", "notifying", "subscriptions"]
    assert first == ["a", "a.example:7443", "1", "there", "2", "2", "1"]
    assert second == ["b", "b.example:7443", "1", "draining", "1", "1", "2"]
    assert "every token has an owner" in shown.stderr


def test_status_says_what_nobody_has(server: ScriptedCluster) -> None:
    server.looks = [cluster_of("a--")]
    assert "2 matching tokens of nobody, 2 notifying tokens of nobody" in call("status").stderr


def test_status_can_tell_each_token(server: ScriptedCluster) -> None:
    server.looks = [cluster_of("a-")]
    last = call("status", "--tokens").stdout.splitlines()[-1]
    assert last.split() == ["notifying", "1", "–", "1", "2023-11-14", "22:13:20", "1"]
    lines = call("status", "--tokens", "-o", "json").stdout.splitlines()
    assert json.loads(lines[0]) == {
        "kind": "matching",
        "token": 0,
        "owner": "a",
        "generation": 1,
        "since": "2023-11-14 22:13:20+00:00",
        "subscriptions": 0,
    }


def test_watch_tells_what_changes_hands(server: ScriptedCluster) -> None:
    server.looks = [cluster_of("aaa"), cluster_of("aab"), cluster_of("aab", draining="b"), cluster_of("aaa")]
    assert call("watch", "--count", "4").stdout.splitlines() == [
        "a is there, at a.example:7443",
        "b is there, at b.example:7443",
        "1 matching token: a → b",
        "1 notifying token: a → b",
        "b is draining",
        "b is gone",
        "1 matching token: b → a",
        "1 notifying token: b → a",
    ]


def test_drain_waits_until_it_is_done(server: ScriptedCluster) -> None:
    server.looks = [cluster_of("ab"), cluster_of("ab", draining="b"), cluster_of("aa")]
    assert "b owns nothing" in call("drain", "b", "--until-done").stderr
    assert server.drained == [("b", False)]
    assert len(server.looks) == 1


def test_drain_can_be_undone(server: ScriptedCluster) -> None:
    server.looks = [cluster_of("ab", draining="b")]
    assert "b takes its share again" in call("drain", "b", "--undo").stderr
    assert server.drained == [("b", True)]


def test_who_is_not_there_cannot_be_drained(server: ScriptedCluster) -> None:
    server.looks = [cluster_of("ab")]
    assert "there is no replica c; there are a, b" in call("drain", "c", code=1).stderr
    assert server.drained == []


def test_a_server_that_stands_alone_says_so(server: ScriptedCluster) -> None:
    assert "it stands alone" in call("status", code=1).stderr
