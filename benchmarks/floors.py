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
    ("me-cp: throughput of 2 threads over 1", 100 * K): 1.6,
    ("speed of 2 threads over 1", 1 * M): 1.5,
    ("subscriptions loaded a second", 1 * M): 100_000,
    ("subscriptions merged a second", 1 * M): 100_000,
    ("bytes a subscription", 1 * M): 100,
    ("ms of a document beyond parsing", 1 * M): 0.2,
    ("ms of 99% of updates", 1 * M): 5,
    ("ms that updates pause a matcher", 1 * M): 10,
    ("GiB at the peak", 10 * M): 16,
    ("dense, auto: times faster than scan", 1 * M): 20,
    ("ads, auto: times faster than scan", 1 * M): 150,
    ("sparse, auto: times faster than scan", 1 * M): 100,
    ("near-miss, auto: times faster than scan", 1 * M): 5,
    ("wide, auto: times faster than scan", 1 * M): 5,
    ("zipf, auto: times faster than scan", 1 * M): 5,
    ("apcm, a-pcm: times faster than scan", 1 * M): 60,
    ("dense: throughput of 2 threads over 1", 1 * M): 1.6,
    ("Boolean subscriptions loaded a second from columns", 1 * M): 500_000,
    ("Boolean subscriptions loaded a second from texts", 1 * M): 100_000,
    ("bytes a Boolean subscription", 1 * M): 200,
    ("end to end, of the engine's speed in-process", 100 * K): 0.5,
    ("durable, of ephemeral speed, about 5,000 matches", 100 * K): 0.2,
    ("durable, of ephemeral speed, about 50 matches", 100 * K): 0.4,
    ("99% of notifications, in mean match times", 100 * K): 15,
    ("speed of the others beside a stopped consumer", 100): 0.9,
    ("KB of an idle stream", 5 * K): 60,
    ("median call beside idle streams, times that without", 5 * K): 1.2,
    ("ms of 99% from create to match", 1 * M): 25,
    ("seconds until ready", 1 * M): 60,
    ("matching on each of two, of one alone", 100 * K): 0.75,
    ("filing of pst-bloom in those of pst-hash", 1 * M): 1 / 3,
}


def bound(what: str, n: int) -> float | None:
    """The number that `what` is held against with `n` subscriptions, if there is one."""
    return BOUNDS.get((what, n))
