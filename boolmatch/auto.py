"""Which algorithm? For a few conjunctions the scan, for more PSTBloom."""

from boolmatch.batches import Batch

__all__ = ["AUTO", "chosen_algorithm"]

AUTO = "auto"
FEW = 32


def chosen_algorithm(asked_for: str, batch: Batch) -> str:
    """The name of the algorithm to file a batch with."""
    if asked_for != AUTO:
        return asked_for
    return "scan" if len(batch.lengths) <= FEW else "pst-bloom"
