"""The picture: what a document costs, by number of subscriptions, for each way to match."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import COST, Row, number

__all__ = ["curves", "draw"]

COLOURS = {"loop over lxml's XPath": "#8c6d31", "delta": "#3b6fb6", "suffix": "#c0392b"}


def curves(rows: Sequence[Row]) -> dict[str, list[tuple[int, float]]]:
    """The cost of a document at each size, by the name of the way."""
    costs = {(row.what, row.subscriptions): row.measured for row in rows if row.unit == COST}
    names = dict.fromkeys(name for name, _ in costs)
    return {name: sorted((n, cost) for (way, n), cost in costs.items() if way == name) for name in names}


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the picture; its suffix says the format."""
    import matplotlib.pyplot as plt  # only who draws needs it installed

    plt.rcParams["svg.hashsalt"] = "pathsieve"  # the same numbers give the same file
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, points in curves(rows).items():
        sizes, costs = zip(*points, strict=True)
        axes.loglog(sizes, costs, marker="o", color=COLOURS.get(name, "#555555"), label=name)
        axes.annotate(f"{number(costs[-1])} ms", (sizes[-1], costs[-1]), (6, 6), textcoords="offset points")
    axes.set(xlabel="subscriptions", ylabel="ms a document (parse, match, result; one thread)")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.grid(which="major", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    axes.margins(x=0.14, y=0.1)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)
