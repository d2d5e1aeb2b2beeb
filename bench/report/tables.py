"""The tables of docs/performance.md, made from a result file: figures are never written by hand."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from bench.report.document import NOT_MEASURED, fill_markers, table_of
from bench.report.result import (
    REQUESTS,
    SEEDS_WRITE_MS,
    TITLES,
    Fact,
    Facts,
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


def machine(result: Result) -> str:
    facts = {"began": result.began} if result.began else {}
    facts |= {**facts_of(result.machine), **facts_of(result.settings)}
    loads = [run.load_before for run in result.runs if run.load_before is not None]
    if loads:
        facts["load before the runs"] = f"{min(loads):.1f} to {max(loads):.1f}"
    facts |= {f"writes: {name}": fact for name, fact in facts_of(result.zookeeper_writes).items()}
    return table_of(["what", "value"], [[name, fact] for name, fact in facts.items()])


def ratios(result: Result) -> str:
    """Return each scenario at the largest common size, with the times of every run."""
    rows = []
    size = find_common_size(result.runs)
    for scenario in result.scenarios():
        kafka, ours = (times(result.find_runs(name, scenario)).get(size or 0, []) for name in ("kafka", "kontroller"))
        if ours:
            rows.append([scenario.title, _all(kafka), _all(ours), _ratio(kafka, ours), scenario.goal])
    header = ["scenario", "Kafka, each run (s)", "Kontroller, each run (s)", "Kafka / Kontroller", "goal"]
    return f"{size:,} partitions. Ratios are of the medians.\n\n{table_of(header, rows)}" if rows else NOT_MEASURED


def failures(result: Result) -> str:
    """Return the runs that did not finish, which no other table has."""
    rows = [
        [TITLES[row.controller], scenario_of(row.scenario).title, f"{row.partitions:,}", _shorten(row.error)]
        for row in result.failures
    ]
    return table_of(["", "scenario", "partitions", "what was wrong"], rows) if rows else "No run failed."


def make_scaling_table(result: Result) -> str:
    """Return medians over the number of partitions, for scenarios with several sizes."""
    rows = []
    sizes = sorted({run.partitions for run in result.runs})
    for scenario in find_scaled(result):
        for name, title in TITLES.items():
            found = times(result.find_runs(name, scenario))
            if found:
                cells = [_seconds(median(found[size])) if size in found else "" for size in sizes]
                rows.append([scenario.title, title, *cells])
    return table_of(["median (s), partitions:", "", *(f"{size:,}" for size in sizes)], rows)


def processor(result: Result) -> str:
    """Return processor times, and the longest stall of our queue, at the largest common size."""
    rows = []
    size = find_common_size(result.runs)
    for scenario in result.scenarios():
        kafka, ours = (
            [run for run in result.find_runs(name, scenario) if run.partitions == size]
            for name in ("kafka", "kontroller")
        )
        spent = [[run.cpu_s for run in runs if run.cpu_s is not None] for runs in (kafka, ours)]
        stalls = [run.worst_stall_ms for run in ours if run.worst_stall_ms is not None]
        if spent[1]:
            stall = f"{max(stalls):,.0f}" if stalls else ""
            rows.append([scenario.title, *map(_all, spent), _ratio(*spent), stall])
    header = ["scenario", "Kafka, each run (s)", "Kontroller, each run (s)", "Kafka / Kontroller"]
    return table_of([*header, "longest event of ours (ms)"], rows)


def memory(result: Result) -> str:
    """Return the resident memory at the end of a scenario, and the peak of the process, in the worst run."""
    columns: dict[str, dict[int, list[float]]] = {}
    for name, title in TITLES.items():
        runs = [run for run in result.runs if run.controller == name]
        columns[f"{title}, resident (MB)"] = group_by_partitions(runs, lambda run: run.rss_mb)
        columns[f"{title}, peak (MB)"] = group_by_partitions(runs, lambda run: run.peak_rss_mb)
    sizes = sorted({size for values in columns.values() for size in values})
    rows = [
        [f"{size:,}", *(f"{max(values[size]):,.0f}" if size in values else "" for values in columns.values())]
        for size in sizes
    ]
    return table_of(["partitions", *columns], rows)


def latencies(result: Result) -> str:
    """Return waiting times of requests; over several runs the median p50, and the worst p99 and maximum."""
    rows = [
        [
            TITLES[row.controller],
            scenario_of(row.scenario, row.variant).title,
            REQUESTS.get(row.request, row.request),
            *(f"{value:,.1f}" for value in (row.p50_ms, row.p99_ms, row.max_ms)),
            f"{row.count:,}",
        ]
        for row in waits(result)
    ]
    return table_of(["", "while", "request", "p50 (ms)", "p99 (ms)", "max (ms)", "requests"], rows)


def writes(result: Result) -> str:
    """Return the ways by sessions, with the seeds' estimate in the first row."""
    found = [row for row in result.writes if row.op == "write" and row.syncs]
    if not found:
        return NOT_MEASURED
    sessions = sorted({row.sessions for row in found})
    estimate = found[0].partitions * SEEDS_WRITE_MS / 1000
    first = ["*seed 004's estimate: 4 ms a write*", "1", "1"]
    estimates = [*first, *(f"*{_seconds(estimate / count)}*" for count in sessions)]
    return table_of([*_TRANSFER_HEADER, *map(_sessions, sessions)], [estimates, *_transfers(found, sessions)])


def costs(result: Result) -> str:
    """Return the disk's share and the processor time of each way, with one session."""
    found = [row for row in result.writes if row.op == "write" and row.sessions == 1]
    rows = []
    for key in dict.fromkeys(_way(row) for row in found):
        of_way = [row for row in found if _way(row) == key]
        synced = [row for row in of_way if row.syncs]
        unsynced = [row for row in of_way if not row.syncs]
        client = [row.cpu_s for row in synced if row.cpu_s is not None]
        server = [row.zookeeper_cpu_s for row in synced if row.zookeeper_cpu_s is not None]
        processors = [_seconds(median(seconds)) if seconds else "" for seconds in (client, server)]
        rows.append([*key, _median_and_least(synced), _median_and_least(unsynced), *processors])
    header = ["waits for the disk (s)", "does not (s)", "processor: client (s)", "processor: ZooKeeper (s)"]
    return table_of([*_TRANSFER_HEADER, *header], rows)


def reads(result: Result) -> str:
    found = [row for row in result.writes if row.op == "read"]
    sessions = sorted({row.sessions for row in found})
    return table_of([*_TRANSFER_HEADER, *map(_sessions, sessions)], _transfers(found, sessions))


TABLES: Final[dict[str, Callable[[Result], str]]] = {
    "machine": machine,
    "ratios": ratios,
    "failures": failures,
    "scaling": make_scaling_table,
    "processor": processor,
    "memory": memory,
    "latencies": latencies,
    "writes": writes,
    "costs": costs,
    "reads": reads,
}


CAPTIONS: Final = {
    "ratios": "Seconds of each scenario, Kafka's and ours",
    "scaling": "Seconds over the number of partitions, Kafka's and ours",
    "memory": "Resident memory over the number of partitions",
    "latencies": "How long requests waited while a scenario ran",
    "writes": "Seconds over the number of sessions, for each way to write",
}
"""The captions of tables with a plot: `bench.report.plots` draws it if the table has data."""


def add_plot(name: str, result: Result, images: str) -> str:
    """Return a table, with its plot above it; `images` is the prefix of the plots' paths."""
    table = TABLES[name](result)
    if name not in CAPTIONS or table == NOT_MEASURED:
        return table
    return f"![{CAPTIONS[name]}]({images}{name}.svg)\n\n{table}"


def fill_document(document: str, result: Result, images: str = "images/performance-") -> str:
    """Return the document with all tables of the result. Raises `MissingTable`."""
    return fill_markers(document, {name: add_plot(name, result, images) for name in TABLES})


_TRANSFER_HEADER: Final = ["way", "states in one", "under way"]


def _transfers(found: Sequence[Transfer], sessions: Sequence[int]) -> list[list[str]]:
    return [
        [
            *key,
            *(
                _median_and_least([row for row in found if _way(row) == key and row.sessions == count])
                for count in sessions
            ),
        ]
        for key in dict.fromkeys(_way(row) for row in found)
    ]


def _way(row: Transfer) -> tuple[str, str, str]:
    name = f"{row.way}, kazoo alone" if row.client == "kazoo" else row.way
    return name, f"{row.batch:,}", "all" if row.window is None else str(row.window)


def _median_and_least(rows: Iterable[Transfer]) -> str:
    seconds = [row.seconds for row in rows]
    return f"{_seconds(median(seconds))} ({_seconds(min(seconds))})" if seconds else ""


def _sessions(count: int) -> str:
    return f"{count} session{'s' if count > 1 else ''} (s)"


def facts_of(facts: Facts | dict[str, Fact]) -> dict[str, str]:
    """Return facts as texts with their units; nested facts one by one."""
    flat: dict[str, str] = {}
    for name, fact in facts.items():
        match fact:
            case dict():
                flat |= {f"{_words(name)}: {inner}": value for inner, value in facts_of(fact).items()}
            case list():
                flat[_words(name)] = ", ".join(map(str, fact))
            case bool() | str() | None:
                flat[_words(name)] = str(fact)
            case number:
                flat[_words(name)] = f"{number:,}"
    return flat


def _words(name: str) -> str:
    words, _, unit = name.rpartition("_")
    if words and unit in _UNITS:
        return f"{words.replace('_', ' ')} ({_UNITS[unit]})"
    return name.replace("_", " ")


_UNITS: Final = {"ms": "ms", "s": "s", "mb": "MB", "gb": "GB", "mib": "MiB", "gib": "GiB", "bytes": "bytes"}


def _all(seconds: Sequence[float]) -> str:
    return " ".join(_seconds(value) for value in seconds)


def _ratio(kafka: Sequence[float], ours: Sequence[float]) -> str:
    return f"**{median(kafka) / median(ours):.1f}x**" if kafka and ours else ""


def _shorten(text: str, limit: int = 200) -> str:
    """Return the beginning of a long text, as a single line."""
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= limit else f"{line[:limit]} ..."


def _seconds(value: float) -> str:
    """Format seconds with three significant digits."""
    decimals = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{decimals}f}"
