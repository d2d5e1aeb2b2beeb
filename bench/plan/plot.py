"""The plot of docs/performance.md that shows plans beside other ways to place replicas."""

from pathlib import Path
from typing import Final

from matplotlib.figure import Figure

from bench.plan.report import Result
from bench.report.plots import GRAY, draw
from controller_planner.goals import Goals

_OURS: Final = "Kontroller"
_WAYS: Final = (("#2f81c9", "o"), ("#d07a1f", "s"), ("#9b6fd0", "^"), ("#2aa198", "D"))
"""A color and a marker for each way, ours first."""


def plot_ways(result: Result) -> Figure | None:
    """Plot the largest load over the bytes copied, a dot for each way and instance; None without other ways."""
    points: dict[str, list[tuple[float, float]]] = {_OURS: []}
    for row in result.instances:
        if row.others:
            points[_OURS].append((1.0, max(row.after)))
        for name, at in row.others.items():
            points.setdefault(name, []).append(at)
    if not points[_OURS]:
        return None
    figure = Figure(figsize=(7, 3.6))
    axes = figure.subplots()
    for (name, found), (color, marker) in zip(points.items(), _WAYS, strict=False):
        copied, largest = ([at[column] for at in found] for column in range(2))
        axes.scatter(copied, largest, 45, color, marker=marker, alpha=0.7, linewidths=0, label=name)
    band = Goals().band
    axes.axhline(band, color=GRAY, linestyle="--", linewidth=1, label=f"the band: {band}")
    axes.set(xscale="log", yscale="log", xlabel="bytes copied, as a multiple of the plan's (log)")
    axes.set_ylabel("largest load / share (log)")
    figure.legend(loc="outside upper center", ncols=len(points) + 1, fontsize=9)
    return figure


def draw_ways(result: Result, docs: Path) -> list[Path]:
    """Write the plot if the result has data for it; return the files."""
    return draw(result, {"ways": plot_ways}, docs / "images", prefix="plan-", kinds=("svg",))
