"""What Prometheus reads is what was counted."""

from prometheus_client.parser import text_string_to_metric_families

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


def test_times_fall_into_buckets() -> None:
    metrics = Metrics("1.0")
    metrics.match_seconds.observe(0.002, 10)
    metrics.match_seconds.observe(100)
    told = samples(metrics)
    assert told["pathsieve_match_seconds_bucket", ("0.001",)] == 0
    assert told["pathsieve_match_seconds_bucket", ("0.0025",)] == 10
    assert told["pathsieve_match_seconds_bucket", ("10.0",)] == 10
    assert told["pathsieve_match_seconds_bucket", ("+Inf",)] == told["pathsieve_match_seconds_count", ()] == 11
