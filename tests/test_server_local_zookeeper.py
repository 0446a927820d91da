"""A ZooKeeper of one's own starts, stops and survives, and says what it lacks."""

from pathlib import Path

import pytest

from server import local_zookeeper
from server.errors import CannotStart
from server.local_zookeeper import LocalEnsemble, LocalZooKeeper, find_jars
from tests.zookeeper import running_ensemble, running_zookeeper


def test_a_server_keeps_its_port_through_a_stop_and_a_crash() -> None:
    with running_zookeeper() as server:
        assert server.mode() == "standalone"
        hosts = server.hosts
        server.stop()
        assert server.mode() is None
        server.start()
        server.kill()
        server.start()
        assert (server.hosts, server.mode()) == (hosts, "standalone")


def test_a_paused_server_does_not_answer_until_it_is_resumed() -> None:
    with running_zookeeper() as server:
        server.pause()
        assert server.is_running
        assert server.mode() is None
        server.resume()
        server.wait()


def test_an_ensemble_chooses_another_leader_when_it_loses_one() -> None:
    with running_ensemble() as ensemble:
        first = ensemble.leader
        assert len(ensemble.hosts.split(",")) == 3
        first.kill()
        others = [server for server in ensemble.servers if server is not first]
        for server in others:
            server.wait()
        assert sorted(str(server.mode()) for server in others) == ["follower", "leader"]
        ensemble.start()
        assert first.mode() == "follower"


def test_a_port_that_another_has_is_refused(zookeeper: LocalZooKeeper, tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match=f"another ZooKeeper has port {zookeeper.port}"):
        LocalZooKeeper(tmp_path, zookeeper.port).start()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("in the place of the folder")
    server = LocalZooKeeper(tmp_path)
    with pytest.raises(CannotStart, match="does not serve"):
        server.start()
    assert not server.is_running


def test_without_java_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(local_zookeeper, "find_java", lambda: None)
    with pytest.raises(CannotStart, match="needs Java"):
        LocalZooKeeper(tmp_path)


def test_without_jars_it_says_which_are_needed(tmp_path: Path) -> None:
    assert find_jars(tmp_path) is None
    with pytest.raises(CannotStart, match=r"zookeeper-jute-\*"):
        LocalEnsemble(tmp_path, jars=tmp_path)
