"""Runs tests repeatedly to find those that fail by chance.

Twenty runs of level 1 in each way take hours, so docs/flaky.json counts them over many sittings. A file's count begins
again when its content changes.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import comb
from pathlib import Path
from typing import Final, TypeAlias

from devcluster.running.processes import spawn
from scripts.checks.parts import python

RECORD: Final = Path("docs/flaky.json")
_CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to run tests."""

    name: str
    busy_loops: int = 0
    delays_writes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The number of runs of a test file in one way, and of failures by case."""

    runs: int = 0
    failures: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The runs of a test file with one content, by the name of the way."""

    content: str
    ways: Mapping[str, Tried]


Record: TypeAlias = Mapping[str, Evidence]
"""The evidence by test file."""


def upper_bound(failures: int, runs: int) -> float:
    """Return the highest failure rate that the runs allow with 95 % confidence (Clopper and Pearson, one-sided)."""
    if failures >= runs:
        return 1.0
    low, high = failures / runs, 1.0
    while high - low > 1e-6:
        rate = (low + high) / 2
        if _compute_probability(failures, runs, rate) > 1 - _CONFIDENCE:
            low = rate
        else:
            high = rate
    return high


def read_record(contents: Mapping[str, str], path: Path = RECORD) -> Record:
    """Return the evidence of files with these contents; nothing of a file that has changed since it ran."""
    rows = json.loads(path.read_text()) if path.exists() else {}
    return {
        file: Evidence(
            content=content,
            ways={
                way: Tried(runs=tried["runs"], failures=tried["failures"])
                for way, tried in rows.get(file, {}).get("ways", {}).items()
                if rows[file]["content"] == content
            },
        )
        for file, content in contents.items()
    }


def write_record(record: Record, path: Path = RECORD) -> None:
    """Write the record, one line for each file, sorted by name."""
    lines = []
    for file, evidence in sorted(record.items()):
        ways = {way: {"runs": tried.runs, "failures": tried.failures} for way, tried in sorted(evidence.ways.items())}
        lines.append(f"  {json.dumps(file)}: {json.dumps({'content': evidence.content, 'ways': ways})}")
    written = path.with_suffix(".new")
    written.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    written.replace(path)


def digest_files(files: Sequence[str]) -> Mapping[str, str]:
    """Return twelve digits of the content of each file or folder."""
    return {file: _digest(Path(file)) for file in files}


def choose_next(record: Record, ways: Sequence[Way], runs: int) -> tuple[Way, list[str]] | None:
    """Return the way with the fewest runs and the files that lack runs in it; None if each file has them all."""
    lacking = {
        way: [file for file, evidence in record.items() if find_tried(evidence, way).runs < runs] for way in ways
    }
    fewest = min(ways, key=lambda way: sum(min(find_tried(each, way).runs, runs) for each in record.values()))
    return (fewest, lacking[fewest]) if lacking[fewest] else None


def count_run(record: Record, way: Way, files: Sequence[str], failures: Counter[str]) -> Record:
    """Return the record with one more run of the files."""
    counted = dict(record)
    for file in files:
        tried = find_tried(record[file], way)
        of_file = Counter({case: count for case, count in failures.items() if _is_in(case, file)})
        after = Tried(runs=tried.runs + 1, failures=dict(Counter(tried.failures) + of_file))
        counted[file] = replace(record[file], ways={**record[file].ways, way.name: after})
    return counted


def find_tried(evidence: Evidence, way: Way) -> Tried:
    """Return the runs of a file in a way."""
    return evidence.ways.get(way.name, Tried(failures={}))


def report_record(record: Record, ways: Sequence[Way]) -> str:
    """Return the outcome of each way, for each number of runs that files have."""
    lines = []
    for way in ways:
        by_runs: dict[int, Counter[str]] = {}
        files: Counter[int] = Counter()
        for evidence in record.values():
            tried = find_tried(evidence, way)
            files[tried.runs] += 1
            by_runs.setdefault(tried.runs, Counter()).update(tried.failures)
        lines += [
            report(by_runs[runs], runs, f"{way.name} ({files[runs]} files)") for runs in sorted(files, reverse=True)
        ]
    return "\n".join(lines)


def report(failures: Counter[str], runs: int, way: str) -> str:
    """Return a line for each test that failed, or one for all: failures of runs, and the bound of the rate."""
    lines = [
        f"{count}/{runs} {way}: {case} (at most {upper_bound(count, runs):.1%})"
        for case, count in failures.most_common()
    ]
    return "\n".join(lines or [f"0/{runs} {way}: no test failed (each at most {upper_bound(0, runs):.1%})"])


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep that many processors busy while the block runs."""
    with ExitStack() as ends:
        for _ in range(count):
            process = spawn(python("-c", "while True: pass"))
            ends.callback(process.wait)
            ends.callback(process.kill)
        yield


def _digest(path: Path) -> str:
    content = hashlib.sha256()
    for each in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        content.update(each.read_bytes())
    return content.hexdigest()[:12]


def _is_in(case: str, file: str) -> bool:
    """Return True if a case is in a file or folder, or is the test that is named."""
    return case.startswith(file) and case[len(file) :][:1] in ("", ":", "/", "[")


def _compute_probability(failures: int, runs: int, rate: float) -> float:
    """Return the probability of at most this many failures."""
    return sum(comb(runs, count) * rate**count * (1 - rate) ** (runs - count) for count in range(failures + 1))
