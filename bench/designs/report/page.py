"""Writes results into docs/performance.md, between its markers `designs/...`, and saves them beside it.

    python -m bench.designs.report.page RESULT.json...

Several result files become one, as for `bench.report.page`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import typer

from bench.designs.report.result import Result
from bench.designs.report.tables import TABLES
from bench.report.document import fill_markers
from bench.report.page import DOCS, write_tables

OF: Final = "designs"


def fill_document(document: str, result: Result) -> str:
    """Return the document with the tables of a result. Raises `MissingTable`."""
    return fill_markers(document, {name: table(result) for name, table in TABLES.items()}, of=OF)


def write_docs(sources: Iterable[Path], docs: Path = DOCS) -> list[Path]:
    """Make these results the documented ones. Raises `ValueError` for a file that is no result."""
    return write_tables(OF, Result, fill_document, sources, docs)


def main(
    sources: Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="Result files, as JSON")],
) -> None:
    """Write the tables of result files."""
    for path in write_docs(sources):
        typer.echo(f"wrote {path}")


if __name__ == "__main__":
    typer.run(main)
