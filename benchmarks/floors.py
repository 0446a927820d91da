"""What must hold, in one place: the numbers that measurements are held against.

A floor belongs to a size. At another size, as in a quick run, the same measurement is only shown.
"""

__all__ = ["bound"]

K, M = 1_000, 1_000_000

BOUNDS: dict[tuple[str, int], float] = {
    ("times faster than the loop", 1 * K): 40,
    ("times faster than the loop", 10 * K): 200,
    ("times faster than the loop", 100 * K): 400,
    ("times faster than delta", 100 * K): 10,
    ("times faster than delta", 1 * M): 40,
    ("times the cost of a tenth", 1 * M): 7,
    ("throughput of 2 threads over 1", 100 * K): 1.6,
    ("speed of 2 threads over 1", 1 * M): 1.5,
    ("subscriptions loaded a second", 1 * M): 100_000,
    ("subscriptions merged a second", 1 * M): 100_000,
    ("bytes a subscription", 1 * M): 100,
    ("ms of a document beyond parsing", 1 * M): 0.2,
    ("ms of 99% of updates", 1 * M): 5,
    ("ms that updates pause a matcher", 1 * M): 10,
    ("GiB at the peak", 10 * M): 16,
}


def bound(what: str, n: int) -> float | None:
    """The number that `what` is held against with `n` subscriptions, if there is one."""
    return BOUNDS.get((what, n))
