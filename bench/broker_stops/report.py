"""The result file of `make bench-stops`, and its tables in docs/performance.md, between markers `stops/...`."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from bench.report.document import fill_markers, table_of
from bench.report.page import DOCS, write_tables
from bench.report.result import Facts
from bench.report.tables import facts_of

OF: Final = "stops"
Producer = Literal["new", "old"]


class Gap(BaseModel):
    """The longest time in which a partition acknowledged nothing to a producer, around one stop.

    A new producer has started just before the stop; an old one runs for the whole round.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    stop: str
    producer: Producer
    run: int
    seconds: float
    errors: int
    """Messages that the producer gave up."""
    timeouts: int
    """Connections that no broker accepted in time."""
    load_before: float


class Result(BaseModel):
    """A whole result file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    began: str | None = None
    machine: Facts = {}
    settings: Facts = {}
    gaps: tuple[Gap, ...] = ()

    def find_gaps(self, stop: str, producer: Producer) -> list[Gap]:
        """Return the gaps of each run."""
        return [gap for gap in self.gaps if (gap.stop, gap.producer) == (stop, producer)]


def make_gaps_table(result: Result) -> str:
    """Return the longest gap of each run, for each kind of stop."""
    rows = []
    for stop in dict.fromkeys(gap.stop for gap in result.gaps):
        new, old = (result.find_gaps(stop, producer) for producer in ("new", "old"))
        rows.append(
            [
                stop,
                *(" ".join(f"{gap.seconds:.2f}" for gap in gaps) for gaps in (new, old)),
                *(str(sum(getattr(gap, count) for gap in (*new, *old))) for count in ("errors", "timeouts")),
            ]
        )
    header = ["stop", "new producer, each run (s)", "old producer, each run (s)", "errors", "connection timeouts"]
    return table_of(header, rows)


def make_machine_table(result: Result) -> str:
    """Return the machine and the settings of the measurement."""
    facts = {"began": result.began} if result.began else {}
    facts |= {**facts_of(result.machine), **facts_of(result.settings)}
    if loads := [gap.load_before for gap in result.gaps]:
        facts["load before the stops"] = f"{min(loads):.1f} to {max(loads):.1f}"
    return table_of(["what", "value"], [[name, fact] for name, fact in facts.items()])


TABLES: Final[dict[str, Callable[[Result], str]]] = {"gaps": make_gaps_table, "machine": make_machine_table}


def fill_document(document: str, result: Result) -> str:
    """Return the document with the tables of a result. Raises `MissingTable`."""
    return fill_markers(document, {name: table(result) for name, table in TABLES.items()}, of=OF)


def write_docs(sources: Iterable[Path], docs: Path = DOCS) -> list[Path]:
    """Make these results the documented ones. Raises `ValueError` for a file that is no result."""
    return write_tables(OF, Result, fill_document, sources, docs)
