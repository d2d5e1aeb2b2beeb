"""Writes what a benchmark has measured as a page with tables and plots: `bench/results/report.md`, or docs/performance.md.

    python -m bench.report RESULT.json [--docs]

An ordinary run leaves the documents alone. With --docs the run becomes the one that docs/performance.md tells of: its
result file is kept beside it, the tables between its markers are replaced, and so are the plots in docs/images.
"""

import shutil
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from bench.plots import draw
from bench.result import Result
from bench.tables import TABLES, filled, with_plot

ROOT: Final = Path(__file__).resolve().parents[1]
DOCUMENT: Final = ROOT / "docs" / "performance.md"
KEPT_RESULT: Final = ROOT / "docs" / "performance.json"
IMAGES: Final = ROOT / "docs" / "images"
RESULTS: Final = ROOT / "bench" / "results"

console = Console(highlight=False, soft_wrap=True)


def write_docs(source: Path) -> list[Path]:
    """Makes this result the documented one. Raises `ValueError` for a file that is no result, or one without our runs."""
    result = Result.load(source)
    if source.resolve() != KEPT_RESULT:
        shutil.copyfile(source, KEPT_RESULT)
    DOCUMENT.write_text(filled(DOCUMENT.read_text(), result))
    return [KEPT_RESULT, DOCUMENT, *draw(result, IMAGES)]


def write_report(source: Path, folder: Path = RESULTS) -> list[Path]:
    """All tables and plots on one page in a folder of their own. Raises `ValueError` for a file that is no result."""
    result = Result.load(source)
    plots = draw(result, folder)
    page = folder / "report.md"
    page.write_text(_page(result))
    return [page, *plots]


def _page(result: Result) -> str:
    sections = (f"## {name.capitalize()}\n\n{with_plot(name, result, 'performance-')}\n" for name in TABLES)
    return "\n".join(["# Performance\n", *sections])


def main(
    source: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="What was measured, as JSON")],
    docs: Annotated[bool, typer.Option("--docs", help="Write docs/performance.md and its plots instead")] = False,
) -> None:
    """Write the tables and plots of a result file."""
    for path in write_docs(source) if docs else write_report(source):
        console.print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    typer.run(main)
