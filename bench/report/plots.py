"""The plots of docs/performance.md, as PNG and SVG, from a result file.

They have no background and lines of middle brightness, so that they are readable on light and dark pages. The same
result makes the same bytes.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from bench.report.result import (
    LATENCY_GOAL_MS,
    MEMORY_GOAL_MB,
    REQUESTS,
    SEEDS_WRITE_MS,
    TITLES,
    Controller,
    Latency,
    Result,
    Transfer,
    find_common_size,
    find_scaled,
    group_by_partitions,
    median,
    scenario_of,
    times,
    waits,
)

T = TypeVar("T")

GRAY: Final = "#767b82"
COLORS: Final[dict[Controller, str]] = {"kontroller": "#2f81c9", "kafka": "#d07a1f"}
MARKERS: Final[dict[Controller, str]] = {"kontroller": "o", "kafka": "s"}
STYLE: Final[dict[Any, Any]] = {
    "font.family": "DejaVu Sans", "font.size": 10, "text.color": GRAY, "axes.labelcolor": GRAY, "axes.edgecolor": GRAY,
    "axes.titlecolor": GRAY, "axes.titlesize": 10, "xtick.color": GRAY, "ytick.color": GRAY, "grid.color": GRAY,
    "grid.alpha": 0.25, "axes.grid": True, "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
    "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none", "legend.frameon": False,
    "lines.linewidth": 1.8, "lines.markersize": 5, "svg.hashsalt": "kontroller", "svg.fonttype": "path",
    "figure.constrained_layout.use": True,
}  # fmt: skip


def ratios(result: Result) -> Figure | None:
    """Plot the seconds of each scenario, Kafka's and ours, each run a dot, with the speedup between."""
    size = find_common_size(result.runs) or 0
    pairs = [
        (scenario, {name: times(result.find_runs(name, scenario)).get(size, []) for name in TITLES})
        for scenario in result.scenarios()
    ]
    pairs = [(scenario, found) for scenario, found in pairs if all(found.values())]
    if not pairs:
        return None
    figure, (axes,) = _figure(8, 1.3 + 0.5 * len(pairs))
    for row, (_, found) in enumerate(pairs):
        middle = {name: median(seconds) for name, seconds in found.items()}
        axes.plot(list(middle.values()), [row, row], color=GRAY, alpha=0.5, linewidth=2, zorder=1)
        for name, seconds in found.items():
            axes.scatter(seconds, [row] * len(seconds), 45, COLORS[name], marker=MARKERS[name], alpha=0.7, linewidths=0)
        ratio = middle["kafka"] / middle["kontroller"]
        between = (middle["kafka"] * middle["kontroller"]) ** 0.5
        axes.annotate(
            f"{ratio:.1f}x", (between, row), xytext=(0, 4), textcoords="offset points", ha="center", weight="bold"
        )
    for name in reversed(TITLES):
        axes.scatter([], [], 45, COLORS[name], marker=MARKERS[name], label=TITLES[name])
    axes.set(xscale="log", xlabel=f"seconds (log), each run with {size:,} partitions", ylim=(len(pairs) - 0.5, -0.7))
    axes.set_yticks(range(len(pairs)), [scenario.title for scenario, _ in pairs])
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(_PLAIN)
    _legend_above(figure, axes)
    return figure


def plot_scaling(result: Result) -> Figure | None:
    """Plot seconds over partitions, a panel for each scenario."""
    panels = find_scaled(result)
    if not panels:
        return None
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure, all_axes = _figure(2.6 * columns + 0.5, 2.6 * rows + 0.6, rows, columns, sharey=True)
    sizes = {run.partitions for run in result.runs}
    for axes, scenario in zip(all_axes, panels, strict=False):
        for name in TITLES:
            _plot_with_range(axes, times(result.find_runs(name, scenario)), name)
        ours = times(result.find_runs("kontroller", scenario))
        ends = [min(ours), max(ours)]
        line = [median(ours[min(ours)]) * size / min(ours) for size in ends]
        axes.plot(ends, line, ":", color=GRAY, linewidth=1.2, label="linear", zorder=1)
        axes.set(xscale="log", yscale="log", title=scenario.title)
        _label_partitions(axes, sizes)
        axes.yaxis.set_major_formatter(_PLAIN)
        axes.yaxis.set_minor_formatter(NullFormatter())
    for axes in all_axes[len(panels) :]:
        axes.set_visible(False)
    figure.supxlabel("partitions (log)", color=GRAY, fontsize=10)
    figure.supylabel("seconds (log)", color=GRAY, fontsize=10)
    _legend_above(figure, all_axes[0])
    return figure


def memory(result: Result) -> Figure | None:
    """Plot resident memory over partitions."""
    figure, (axes,) = _figure(7, 3.6)
    for name in TITLES:
        runs = [run for run in result.runs if run.controller == name]
        _plot_with_range(axes, group_by_partitions(runs, lambda run: run.rss_mb), name)
    if not axes.lines:
        return None
    axes.axhline(MEMORY_GOAL_MB, color=GRAY, linestyle="--", linewidth=1, label=f"goal at 100,000: {MEMORY_GOAL_MB} MB")
    axes.set(xscale="log", yscale="log", xlabel="partitions (log)", ylabel="resident memory (MB, log)")
    axes.yaxis.set_major_formatter(_PLAIN)
    axes.yaxis.set_minor_formatter(NullFormatter())
    _label_partitions(axes, {run.partitions for run in result.runs if run.rss_mb is not None})
    _legend_above(figure, axes)
    return figure


def latencies(result: Result) -> Figure | None:
    """Plot the 50th percentile, the 99th and the longest wait, a line for each controller."""
    rows = waits(result)
    if not rows:
        return None
    places = {key: place for place, key in enumerate(dict.fromkeys(_name_request(row) for row in rows))}
    figure, (axes,) = _figure(8, 1.3 + 0.42 * len(places))
    for row in rows:
        color, place = COLORS[row.controller], places[_name_request(row)] + _BESIDE[row.controller]
        axes.plot([row.p50_ms, row.max_ms], [place, place], color=color, alpha=0.45, linewidth=1.5)
        for marker, value in zip(_WAITS.values(), (row.p50_ms, row.p99_ms, row.max_ms), strict=True):
            axes.plot(value, place, marker, color=color, markersize=5, markeredgewidth=1.5)
    for name in dict.fromkeys(row.controller for row in rows):
        axes.plot([], [], color=COLORS[name], label=TITLES[name])
    for label, marker in _WAITS.items():
        axes.plot([], [], marker, color=GRAY, label=label)
    axes.axvline(LATENCY_GOAL_MS, color=GRAY, linestyle="--", linewidth=1, label=f"goal for p99: {LATENCY_GOAL_MS} ms")
    axes.set(xscale="log", xlabel="milliseconds until the answer (log)", ylim=(len(places) - 0.5, -0.5))
    axes.set_yticks(range(len(places)), list(places))
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(_PLAIN)
    _legend_above(figure, axes)
    return figure


_BESIDE: Final[dict[Controller, float]] = {"kafka": -0.16, "kontroller": 0.16}
_WAITS: Final = {"p50": "|", "p99": "o", "max": ">"}


def _name_request(row: Latency) -> str:
    return f"{scenario_of(row.scenario, row.variant).title}: {REQUESTS.get(row.request, row.request)}"


def writes(result: Result) -> Figure | None:
    """Plot seconds over sessions, a line for each way, beside the estimate of seed 004."""
    found = [row for row in result.writes if row.op == "write" and row.syncs]
    if not found:
        return None
    figure, (axes,) = _figure(8.6, 4.6)
    sessions = sorted({row.sessions for row in found})
    partitions = found[0].partitions
    estimate = partitions * SEEDS_WRITE_MS / 1000
    axes.plot(sessions, [estimate / count for count in sessions], "--", color=GRAY, label="seed 004: 4 ms a write")
    for (label, of_line), (color, marker) in zip(_lines(found).items(), _LINES, strict=False):
        values = {
            count: median(row.seconds for row in of_line if row.sessions == count)
            for count in sorted({row.sessions for row in of_line})
        }
        axes.plot(list(values), list(values.values()), marker=marker, color=color, label=label)
    axes.set(xscale="log", yscale="log", xlabel="ZooKeeper sessions (log)")
    axes.set_ylabel(f"seconds for {partitions:,} states (log), medians")
    axes.set_xticks(sessions, [str(count) for count in sessions])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(_PLAIN)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center", fontsize=9)
    return figure


PLOTS: Final[dict[str, Callable[[Result], Figure | None]]] = {
    "ratios": ratios,
    "scaling": plot_scaling,
    "memory": memory,
    "latencies": latencies,
    "writes": writes,
}


def draw(
    result: T,
    plots: Mapping[str, Callable[[T], Figure | None]],
    folder: Path,
    *,
    prefix: str = "performance-",
    kinds: Collection[str] = ("png", "svg"),
) -> list[Path]:
    """Write each plot for which the result has data, in each kind of file; return the files in order."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    with mpl.rc_context(STYLE):
        for name, plot in plots.items():
            figure = plot(result)
            if figure is None:
                continue
            for kind in kinds:
                path = folder / f"{prefix}{name}.{kind}"
                figure.savefig(path, dpi=160, metadata=_METADATA[kind])
                made.append(path)
    return made


_METADATA: Final = {"png": {"Software": None}, "svg": {"Date": None}}
"""Without what differs between two runs."""


_LINES: Final = (
    ("#a0522d", "x"), ("#d07a1f", "s"), ("#b8960c", "D"), ("#7a9a2b", "d"),
    ("#9b6fd0", "^"), ("#c04f8d", "v"), ("#d0485a", "<"), ("#2aa198", "P"), ("#2f81c9", "o"), ("#5468d4", "h"),
)  # fmt: skip
"""A color and a marker for each way, in order; all of middle brightness."""


def _lines(found: Iterable[Transfer]) -> dict[str, list[Transfer]]:
    lines: dict[str, list[Transfer]] = {}
    for row in found:
        label = f"{row.way}, kazoo alone" if row.client == "kazoo" else row.way
        label += f", {row.batch:,} in one" if row.batch > 1 else f", {row.window} under way" if row.window != 1 else ""
        lines.setdefault(label, []).append(row)
    return lines


def _plot_with_range(axes: Axes, found: dict[int, list[float]], name: Controller) -> None:
    """Plot a line of medians, with a bar from the least to the most."""
    if found:
        middle = [median(values) for values in found.values()]
        down = [value - min(values) for value, values in zip(middle, found.values(), strict=True)]
        up = [max(values) - value for value, values in zip(middle, found.values(), strict=True)]
        axes.errorbar(
            list(found), middle, [down, up], color=COLORS[name], marker=MARKERS[name], label=TITLES[name], capsize=3
        )


def _figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, Sequence[Axes]]:
    figure = Figure(figsize=(width, height))
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(axes.flat)


def _legend_above(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), fontsize=9)


def _label_partitions(axes: Axes, sizes: Iterable[int]) -> None:
    axes.set_xticks(sorted(sizes), [_short(size) for size in sorted(sizes)])
    axes.xaxis.set_minor_locator(NullLocator())


def _short(size: int) -> str:
    return f"{size / 1e6:g} M" if size >= 1_000_000 else f"{size / 1000:g} k"


_PLAIN: Final = FuncFormatter(lambda value, _: f"{value:,g}")
