"""What Prometheus reads is what was counted."""

from prometheus_client.parser import text_string_to_metric_families

from server.cluster.observation import MOVES, SESSION_STATES, ClusterObservation
from server.metrics import Metrics, Observation


def samples(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        (sample.name, tuple(sample.labels.values())): sample.value for family in families for sample in family.samples
    }


def test_everything_is_there_from_the_start() -> None:
    names = {name for name, _ in samples(Metrics("1.0"))}
    assert names >= {
        "pathsieve_matches_total",
        "pathsieve_duplicates_dropped_total",
        "pathsieve_redelivered_total",
        "pathsieve_dead_lettered_total",
        "pathsieve_index_bytes",
        "pathsieve_backlog_messages",
        "pathsieve_backlog_oldest_age_seconds",
        "pathsieve_attached_streams",
        "pathsieve_match_seconds_bucket",
        "pathsieve_store_commit_seconds_sum",
        "pathsieve_build_info",
    }


def test_what_was_observed_is_told_with_its_labels() -> None:
    metrics = Metrics("1.0")
    metrics.observe = lambda: Observation({"accepted": 5, "refused": 1}, 40, subscriptions={"xpath": 3, "boolean": 2})
    told = samples(metrics)
    assert told["pathsieve_documents_total", ("accepted",)] == 5
    assert told["pathsieve_documents_total", ("refused",)] == 1
    assert told["pathsieve_matches_total", ()] == 40
    assert told["pathsieve_subscriptions", ("boolean",)] == 2
    assert told["pathsieve_build_info", ("1.0",)] == 1


def test_messages_past_retention_and_the_process_itself_are_told() -> None:
    metrics = Metrics("1.0")
    metrics.observe = lambda: Observation(expired=3, deadlines_missed=2)
    told = samples(metrics)
    assert told["pathsieve_expired_total", ()] == 3
    assert told["pathsieve_ack_deadlines_missed_total", ()] == 2
    assert told["process_resident_memory_bytes", ()] > 1e6


def test_times_fall_into_buckets() -> None:
    metrics = Metrics("1.0")
    metrics.match_seconds.observe(0.002, 10)
    metrics.match_seconds.observe(100)
    told = samples(metrics)
    assert told["pathsieve_match_seconds_bucket", ("0.001",)] == 0
    assert told["pathsieve_match_seconds_bucket", ("0.0025",)] == 10
    assert told["pathsieve_match_seconds_bucket", ("10.0",)] == 10
    assert told["pathsieve_match_seconds_bucket", ("+Inf",)] == told["pathsieve_match_seconds_count", ()] == 11


def test_a_server_that_stands_alone_says_nothing_of_a_cluster() -> None:
    assert [name for name, _ in samples(Metrics("1.0")) if "cluster" in name] == []


def test_a_replica_tells_of_its_session_tokens_and_peers() -> None:
    metrics = Metrics("1.0")
    replica = ClusterObservation("suspended", {"matching": 86, "notifying": 85}, 2, {"b": 0.0, "c": 1.5}, 7)
    metrics.observe = lambda: Observation(cluster=replica)
    told = samples(metrics)
    assert told["pathsieve_cluster_tokens_owned", ("matching",)] == 86
    assert told["pathsieve_cluster_tokens_owned", ("notifying",)] == 85
    assert [told["pathsieve_cluster_session", (state,)] for state in SESSION_STATES] == [0, 1, 0]
    assert told["pathsieve_cluster_peers", ()] == 2
    assert told["pathsieve_cluster_peer_lag_seconds", ("c",)] == 1.5
    assert told["pathsieve_cluster_log_lag_records", ()] == 7


def test_moves_of_tokens_are_counted_by_kind_and_reason_and_told_before_the_first() -> None:
    metrics = Metrics("1.0")
    metrics.observe = lambda: Observation(cluster=ClusterObservation())
    metrics.token_moves["matching", "stolen"] += 3
    metrics.token_load_seconds.observe(0.2, 3)
    told = samples(metrics)
    moves = {labels: value for (name, labels), value in told.items() if name == "pathsieve_cluster_token_moves_total"}
    assert moves == dict.fromkeys(MOVES, 0) | {("matching", "stolen"): 3}
    assert told["pathsieve_cluster_token_load_seconds_bucket", ("0.25",)] == 3
    assert told["pathsieve_cluster_tokens_owned", ("matching",)] == 0
