"""Writes results as a page with tables and plots: `bench/results/report.md`, or docs/performance.md.

    python -m bench.report.page RESULT.json... [--docs]

Several result files become one, with all their rows. Without --docs the documents stay as they are. With --docs the
result becomes that of docs/performance.md: it is saved beside the page, and the tables between its markers and the
plots in docs/images are replaced.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer
from pydantic import BaseModel, ValidationError
from rich.console import Console

from bench.report.plots import PLOTS, draw
from bench.report.result import Result
from bench.report.tables import TABLES, add_plot, fill_document

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
RESULTS: Final = ROOT / "bench" / "results"

Measured = TypeVar("Measured", bound=BaseModel)

console = Console(highlight=False, soft_wrap=True)


def merge_results(sources: Iterable[Path]) -> dict[str, Any]:
    """Return the contents of result files as one: all rows, and otherwise the values of the first file.

    Raises `ValueError` for a file that is no result.
    """
    content: dict[str, Any] = {}
    for source in sources:
        try:
            found = json.loads(source.read_text())
            Result.model_validate(found)
        except (json.JSONDecodeError, ValidationError) as error:
            raise ValueError(f"{source} is no result of a benchmark: {error}") from error
        for name, value in found.items():
            if isinstance(value, list):
                content[name] = content.get(name, []) + value
            else:
                content.setdefault(name, value)
    return content


def write_tables(
    of: str, model: type[Measured], fill: Callable[[str, Measured], str], sources: Iterable[Path], docs: Path
) -> list[Path]:
    """Make results of another benchmark the documented ones: `performance-OF.json`, and its tables in the document.

    Raises `ValueError` for a file that is no result, and `MissingTable`.
    """
    content = merge_results(sources)
    kept, document = docs / f"performance-{of}.json", docs / "performance.md"
    document.write_text(fill(document.read_text(), model.model_validate(content)))
    kept.write_text(one_row_a_line(content))
    return [kept, document]


def write_docs(sources: Sequence[Path], docs: Path = DOCS) -> list[Path]:
    """Make these results the documented ones. Raises `ValueError` for a file that is no result."""
    content = merge_results(sources)
    result = Result.model_validate(content)
    kept, document, images = docs / "performance.json", docs / "performance.md", docs / "images"
    text = fill_document(document.read_text(), result)
    kept.write_text(one_row_a_line(content))
    document.write_text(text)
    for of_an_earlier_run in images.glob("performance-*"):
        of_an_earlier_run.unlink()
    return [kept, document, *draw(result, PLOTS, images)]


def write_report(sources: Sequence[Path], folder: Path = RESULTS) -> list[Path]:
    """Write all tables and plots on one page in a folder of their own. Raises `ValueError` for a file that is no
    result.
    """
    result = Result.model_validate(merge_results(sources))
    plots = draw(result, PLOTS, folder)
    page = folder / "report.md"
    sections = (f"## {name.capitalize()}\n\n{add_plot(name, result, 'performance-')}\n" for name in TABLES)
    page.write_text("\n".join(["# Performance\n", *sections]))
    return [page, *plots]


def one_row_a_line(content: dict[str, Any]) -> str:
    """Return JSON with a line for each row, so that diffs show the changed rows."""
    parts = []
    for name, value in content.items():
        rows = ",\n  ".join(json.dumps(row) for row in value) if isinstance(value, list) else ""
        parts.append(f" {json.dumps(name)}: " + (f"[\n  {rows}\n ]" if rows else json.dumps(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(
    sources: Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="Result files, as JSON")],
    docs: Annotated[bool, typer.Option("--docs", help="Write docs/performance.md and its plots instead")] = False,
) -> None:
    """Write the tables and plots of result files."""
    try:
        written = write_docs(sources) if docs else write_report(sources)
    except ValueError as error:
        console.print(str(error))
        raise typer.Exit(1) from error
    for path in written:
        console.print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    typer.run(main)
