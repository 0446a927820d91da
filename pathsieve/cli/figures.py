"""The server's figures, from the text that its HTTP port has for Prometheus.

/metrics at two moments ──▶ Figures ──▶ documents a second, matches a second, time a match …
"""

import time
from dataclasses import dataclass
from typing import Any

__all__ = ["DEFAULT_HTTP", "Figures", "Rates", "rates_between", "read_figures"]

DEFAULT_HTTP = "http://127.0.0.1:7480"

Sample = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Figures:
    """All samples at one moment, by name and labels."""

    moment: float
    samples: dict[Sample, float]

    def total(self, name: str) -> float:
        """The sum over all labels."""
        return sum(value for (found, _), value in self.samples.items() if found == name)

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """The value of each label."""
        return {dict(labels)[label]: value for (found, labels), value in self.samples.items() if found == name}


@dataclass(frozen=True, slots=True)
class Rates:
    """What happened between two moments: numbers a second, and seconds."""

    documents: float
    matches: float
    delivered: float
    redelivered: float
    match_mean: float
    match_p99: float
    commit_mean: float


def read_figures(text: str) -> Figures:
    """The figures in a text."""
    from prometheus_client.parser import text_string_to_metric_families

    families: Any = text_string_to_metric_families(text)
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }
    return Figures(time.monotonic(), samples)


def rates_between(before: Figures, now: Figures) -> Rates:
    """What happened in between."""
    seconds = max(now.moment - before.moment, 1e-9)

    def grown(name: str) -> float:
        return max(now.total(name) - before.total(name), 0.0)

    def mean(name: str) -> float:
        n_times = grown(f"{name}_count")
        return grown(f"{name}_sum") / n_times if n_times else 0.0

    return Rates(
        documents=grown("pathsieve_documents_total") / seconds,
        matches=grown("pathsieve_matches_total") / seconds,
        delivered=grown("pathsieve_delivered_total") / seconds,
        redelivered=grown("pathsieve_redelivered_total") / seconds,
        match_mean=mean("pathsieve_match_seconds"),
        match_p99=_quantile(before, now, "pathsieve_match_seconds_bucket", 0.99),
        commit_mean=mean("pathsieve_store_commit_seconds"),
    )


def _quantile(before: Figures, now: Figures, name: str, share: float) -> float:
    """The upper end of the bucket that so many do not exceed; 0 if nothing happened."""
    old = before.by_label(name, "le")
    grown = sorted((float(bound), value - old.get(bound, 0.0)) for bound, value in now.by_label(name, "le").items())
    wanted = grown[-1][1] * share if grown else 0.0
    reached = (bound for bound, value in grown if wanted and value >= wanted)
    return next(reached, 0.0)
