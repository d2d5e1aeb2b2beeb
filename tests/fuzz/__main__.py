"""`make fuzz`: searches for inputs that are read wrongly, target by target, two at a time.

The cache keeps libFuzzer's interesting inputs, so that the next run continues from there. `--keep` adds inputs to the
repository that reach code which nothing in its corpus reaches. A wrongly read input is written to a file, whose name is
in the output.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from devcluster.building.cache import cache_folder
from tests.fuzz.target import Target
from tests.fuzz.targets import NAMES, target

ROOT: Final = Path(__file__).parents[2]
HANGS_AFTER_S: Final = 20
"""The time limit of one input on a busy machine: it usually takes a millisecond."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of the search for inputs of a target."""

    name: str
    said: str
    is_well: bool


def look(name: str, seconds: int, *, keep: bool) -> Outcome:
    """Search for inputs of one target for some seconds."""
    of = target(name)
    found = cache_folder() / "fuzz" / name
    findings = cache_folder() / "fuzz-findings"
    for folder in (found, findings, of.corpus):
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kontroller-fuzz-") as scratch:
        examples = Path(scratch) / "examples"
        examples.mkdir()
        for number, example in enumerate(of.examples()):
            (examples / str(number)).write_bytes(example)
        limits = [f"-timeout={HANGS_AFTER_S}", f"-max_total_time={seconds}", f"-artifact_prefix={findings / name}-"]
        outcome = _run(of, Path(scratch), *limits, "-print_final_stats=1", str(found), str(of.corpus), str(examples))
        if keep and outcome.is_well:
            _run(of, Path(scratch), "-merge=1", str(of.corpus), str(found), str(examples))
    return outcome


def _run(of: Target, scratch: Path, *options: str) -> Outcome:
    command = [sys.executable, "-m", "tests.fuzz.one_target", of.name, *options]
    paths = {"TMPDIR": str(scratch), "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "operator")))}
    ended = subprocess.run(command, cwd=ROOT, env={**os.environ, **paths}, capture_output=True, text=True, check=False)
    return Outcome(name=of.name, said=ended.stdout + ended.stderr, is_well=ended.returncode == 0)


@app.command()
def main(
    seconds: Annotated[int, typer.Option(help="Seconds of searching for each target.")] = 60,
    only: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(NAMES)}; may be repeated.")] = None,
    at_once: Annotated[int, typer.Option(help="Number of targets in parallel.")] = os.cpu_count() or 1,
    keep: Annotated[bool, typer.Option(help="Keep inputs that reach new code in the repository.")] = False,
) -> None:
    """Search for bytes that are read wrongly: an error of the wrong type, too much memory, no end."""
    unknown = sorted({*(only or ())} - {*NAMES})
    if unknown:
        raise typer.BadParameter(f"there is no {', '.join(unknown)}: choose of {', '.join(NAMES)}")
    if importlib.util.find_spec("atheris") is None:
        typer.echo("NOT FUZZED: atheris has no build for this Python or machine (it has for Linux on x86-64)")
        return
    failed = False
    with ThreadPoolExecutor(at_once) as pool:
        for outcome in pool.map(lambda name: look(name, seconds, keep=keep), only or NAMES):
            failed |= not outcome.is_well
            typer.echo(_format_outcome(outcome))
    raise typer.Exit(int(failed))


def _format_outcome(outcome: Outcome) -> str:
    if not outcome.is_well:
        return f"{outcome.name}: READ WRONGLY\n{outcome.said}"
    stats = [line.split() for line in outcome.said.splitlines() if line.startswith("stat::")]
    units = {name.rstrip(":"): value for name, value in stats}
    return f"{outcome.name}: {units['stat::number_of_executed_units']} inputs, {units['stat::new_units_added']} of them new"


if __name__ == "__main__":
    app()
