"""The result file of `make bench-plan`, and its tables in docs/performance.md, between markers `plan/...`."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from bench.report.document import NOT_MEASURED, fill_markers, table_of
from bench.report.page import DOCS, write_tables
from bench.report.result import Facts
from bench.report.tables import facts_of

OF: Final = "plan"
PLOT: Final = "images/plan-ways.svg"
"""The path of the plot, in the folder of the document."""
_CAPTION: Final = "Largest load over the bytes copied, for plans and other ways"


class InstanceRow(BaseModel):
    """The figures of one instance, and the bars that it misses."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    instance: str
    mode: str
    partitions: int
    brokers: int
    seconds: float
    processor_seconds: float
    memory_gib: float
    before: tuple[float, ...]
    """The largest load of each resource, as a multiple of the share."""
    after: tuple[float, ...]
    gigabytes: float
    times_bound: float | None
    next_leaders: tuple[int, int]
    """The most that one broker takes over from another, and the bar."""
    others: dict[str, tuple[float, float]] = {}
    """Of other ways: bytes as a multiple of the plan's, and the largest load of any resource."""
    missed: tuple[str, ...] = ()


class SmallRow(BaseModel):
    """A small cluster, compared with HiGHS."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    instance: str
    excess: float
    optimum_excess: float
    times_bytes: float
    is_proven: bool
    missed: tuple[str, ...] = ()


class BacktestRow(BaseModel):
    """Many losses of brokers of a large cluster."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    instance: str
    losses: int
    partitions: int
    seconds: float
    missed: tuple[str, ...] = ()


class Result(BaseModel):
    """A whole result file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    began: str | None = None
    machine: Facts = {}
    settings: Facts = {}
    instances: tuple[InstanceRow, ...] = ()
    small: tuple[SmallRow, ...] = ()
    backtests: tuple[BacktestRow, ...] = ()

    def list_missed(self) -> list[str]:
        """Return the missed bars."""
        rows: tuple[InstanceRow | SmallRow | BacktestRow, ...] = (*self.instances, *self.small, *self.backtests)
        return [sentence for row in rows for sentence in row.missed]


def make_instances_table(result: Result) -> str:
    """Return a row for each instance."""
    rows = [
        [
            row.instance,
            row.mode,
            f"{row.partitions:,} on {row.brokers:,}",
            f"{row.seconds:.2f}",
            f"{row.processor_seconds:.2f}",
            f"{row.memory_gib:.2f}",
            " ".join(f"{value:.2f}" for value in row.before),
            " ".join(f"{value:.3f}" for value in row.after),
            f"{row.gigabytes:,.0f}",
            "" if row.times_bound is None else f"{row.times_bound:.3f}",
            f"{row.next_leaders[0]} of {row.next_leaders[1]}",
        ]
        for row in result.instances
    ]
    header = ["instance", "mode", "partitions on brokers", "s", "CPU s", "GiB", "before", "after", "GB", "/ bound",
              "next leaders"]  # fmt: skip
    return table_of(header, rows)


def make_others_table(result: Result) -> str:
    """Return the other ways, for each instance that they were played on."""
    rows = [
        [row.instance, name, f"{times:.2f}", f"{largest:.2f}"]
        for row in result.instances
        for name, (times, largest) in row.others.items()
    ]
    return table_of(["instance", "way", "bytes / the plan's", "largest load / share"], rows)


def add_plot_of_others(result: Result) -> str:
    """Return the other ways, with their plot above them."""
    table = make_others_table(result)
    return f"![{_CAPTION}]({PLOT})\n\n{table}" if table != NOT_MEASURED else table


def make_small_table(result: Result) -> str:
    """Return the small clusters beside their optimum."""
    rows = [
        [
            row.instance,
            f"{row.excess:.3f}",
            f"{row.optimum_excess:.3f}",
            f"{row.times_bytes:.3f}",
            "yes" if row.is_proven else "no",
        ]
        for row in result.small
    ]
    return table_of(["instance", "above bounds", "HiGHS above bounds", "bytes / HiGHS", "optimum proven"], rows)


def make_backtests_table(result: Result) -> str:
    """Return a row for each backtest."""
    rows = [[row.instance, f"{row.losses:,}", f"{row.partitions:,}", f"{row.seconds:.2f}"] for row in result.backtests]
    return table_of(["instance", "losses", "partitions", "s"], rows)


def make_missed_list(result: Result) -> str:
    """Return a line for each missed bar."""
    if not (result.instances or result.small or result.backtests):
        return NOT_MEASURED
    return "\n".join(f"- {sentence}" for sentence in result.list_missed()) or "No bar was missed."


def make_machine_table(result: Result) -> str:
    """Return the machine and the settings of the measurement."""
    facts = {"began": result.began} if result.began else {}
    facts |= {**facts_of(result.machine), **facts_of(result.settings)}
    return table_of(["what", "value"], [[name, fact] for name, fact in facts.items()])


TABLES: Final[dict[str, Callable[[Result], str]]] = {
    "instances": make_instances_table,
    "others": add_plot_of_others,
    "small": make_small_table,
    "backtests": make_backtests_table,
    "missed": make_missed_list,
    "machine": make_machine_table,
}


def fill_document(document: str, result: Result) -> str:
    """Return the document with the tables of a result. Raises `MissingTable`."""
    return fill_markers(document, {name: table(result) for name, table in TABLES.items()}, of=OF)


def write_docs(sources: Iterable[Path], docs: Path = DOCS) -> list[Path]:
    """Make these results the documented ones. Raises `ValueError` for a file that is no result."""
    return write_tables(OF, Result, fill_document, sources, docs)
