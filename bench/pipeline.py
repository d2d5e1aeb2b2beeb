"""The speed of Spark's fold of a history on this machine: from events, and from JSON lines, to seconds without a
leader.

    python -m bench.pipeline --events 10000000 --cores 1 --cores 2 --lines 1000000 --skewed-lines 1000000

The generated history resembles a month of a busy cluster (`history`). Spark compiles its code in a warm-up, then the
fold is measured three times. Lines are ingested cold into one history, warm into a second one, and again into the
first, which has no news then. In skewed lines, 90 % of the changes are in one topic, half of these in one partition.
The changes are random, so the audit finds violations in most of them. Each number of cores gets its own process. The
result is printed, and saved in bench/results/pipeline.json.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType
from rich.console import Console

from kontroller.history.answers.all import answer_all
from kontroller.history.answers.options import Options
from kontroller.history.folding.tables import RAW_EVENTS
from kontroller.history.kept_history import KeptHistory
from kontroller.history.schemas import CONFIG_INTERVALS, EVENTS, EXPOSURE, KNOWN_SPANS, PARTITION_INTERVALS
from kontroller.history.session import local_session
from kontroller.history.sources import journal_files
from kontroller.history.transforms.config_intervals import config_intervals
from kontroller.history.transforms.continuity.breaks import marks
from kontroller.history.transforms.known_spans import find_known_spans
from kontroller.history.transforms.partition_intervals import partition_intervals

Measure = Callable[[int, int, Path], dict[str, Any]]

PARTITIONS: Final = 20_000
IN_TOPIC: Final = 20
TERM: Final = 1_000_000
"""The records of a controller epoch. The first 41,003 begin it: all topics, assignments and leaderships."""
FOLDS: Final = 3
"""The number of measurements of the fold; the median determines its speed."""
RESULTS: Final = Path(__file__).parent / "results" / "pipeline.json"

console = Console(highlight=False)


def history(spark: SparkSession, events: int, *, is_skewed: bool = False) -> DataFrame:
    """Return this number of events, in the columns of `schemas.EVENTS`, computed from the records' numbers alone.

    There are 20,000 partitions with three replicas in 1,000 topics. Every million records a new term begins with a
    snapshot. Of the changes between, 70 % are of the ISR, 24 % elect another leader, 1 % leave none, and 5 % change the
    assignment.
    """
    topics, changed = PARTITIONS // IN_TOPIC, _SKEWED if is_skewed else "hash(id)"
    ended = 2 + topics + 2 * PARTITIONS
    place = {
        "seq": f"id % {TERM}",
        "controller_epoch": f"id div {TERM} + 1",
        "luck": "pmod(xxhash64(id), 100)",
        "number": f"pmod(if(id % {TERM} < {ended}, id % {TERM} - 2 - {topics}, {changed}), {PARTITIONS})",
    }
    rows = spark.range(events).selectExpr("id", *(f"{value} as {name}" for name, value in place.items()))
    kind = (
        f"case when seq = 0 then 'controller_elected' when seq = 1 then 'snapshot_started'"
        f" when seq < {2 + topics} then 'topic'"
        f" when seq < {2 + topics + PARTITIONS} then 'assignment' when seq < {ended} then 'leadership'"
        f" when seq = {ended} then 'snapshot_ended' when luck < 95 then 'leadership' else 'assignment' end"
    )
    rows = rows.selectExpr("*", f"{kind} as kind", f"seq > 1 and seq < {ended} as snapshot")
    is_told = "kind = 'leadership' and (snapshot or luck between 70 and 94)"
    is_of_topic = "kind in ('topic', 'assignment', 'leadership')"
    is_assigned = "kind = 'assignment'"
    replicas = "array(int(1 + number % 6), int(1 + (number + 1) % 6), int(1 + (number + 2) % 6))"
    columns = {
        "cluster_id": "'bench'",
        "origin": "'controller'",
        "journal": "'/bench'",
        "source": "'/bench/segment.jsonl'",
        "controller_id": "int(100)",
        "event_time": "timestamp_micros(1767225600000000 + id * 250000 + pmod(hash(id), 250) * 1000)",
        "took_us": "if(snapshot, null, 2500)",
        "cause": "if(luck < 70, 'alter_partition', 'broker_failed')",
        "correlation_id": "concat(controller_epoch, '-', id div 4)",
        "inferred": "false",
        "unclean": "false",
        "topic": f"if({is_of_topic}, concat('topic-', if(kind = 'topic', seq - 2, number div {IN_TOPIC})), null)",
        "partition": f"if(kind in ('assignment', 'leadership'), number % {IN_TOPIC}, null)",
        "leader": f"if({is_told}, if(luck = 94 and not snapshot, -1, {replicas}[luck % 3]), null)",
        "isr": f"if(kind = 'leadership', slice({replicas}, 1, 1 + int(luck % 3)), null)",
        "leader_epoch": f"if({is_told}, int(id div 1000), null)",
        "leader_recovery_state": "if(kind = 'leadership' and snapshot, 0, null)",
        "state_controller_epoch": f"if({is_told}, controller_epoch, null)",
        "partition_epoch": "if(kind = 'leadership', int(id div 100), null)",
        "replicas": f"if({is_assigned}, {replicas}, null)",
        "adding": f"if({is_assigned}, slice(array(0), 1, 0), null)",
        "removing": f"if({is_assigned}, slice(array(0), 1, 0), null)",
        "origin_order": f"if({is_assigned}, slice(array(0), 1, 0), null)",
        "czxid": "if(kind = 'topic', id, null)",
        "entries": f"if(kind = 'snapshot_ended', {ended - 2}, null)",
        "checksum": "if(kind = 'snapshot_ended', 0, null)",
    }
    rows = rows.selectExpr("seq", "controller_epoch", "kind", "snapshot", *(f"{v} as {k}" for k, v in columns.items()))
    return rows.select(*(_column(rows, field.name, field.dataType) for field in EVENTS.schema))


_SKEWED: Final = f"""case when pmod(xxhash64(id, 1), 20) < 9 then 0
    when pmod(xxhash64(id, 1), 20) < 18 then pmod(hash(id), {IN_TOPIC}) else hash(id) end"""
"""The number of a record's partition, if most records are in one topic."""


def make_lines(events: DataFrame) -> DataFrame:
    """Return the lines of a journal with these events."""
    names = EVENTS.schema.fieldNames()
    deltas = names[names.index("leader") : names.index("reason")]
    envelope = [
        "1 as v", "cluster_id", "controller_id", "controller_epoch", "seq", "unix_micros(event_time) as event_time_us",
        "took_us", "kind", "cause", "correlation_id", "if(snapshot, true, null) as snapshot", "topic", "topic_id",
        "partition", "entries", "checksum",
    ]  # fmt: skip
    delta = f"if(kind in ('topic', 'assignment', 'leadership'), struct({', '.join(deltas)}), null) as delta"
    return events.selectExpr(*envelope, delta).selectExpr("to_json(struct(*)) as value")


def measure(events: int, cores: int, data: Path) -> dict[str, Any]:
    """Measure the seconds of each step from events on, by the clock and of the processors, in this process."""
    spark = local_session("bench", cores=cores, memory="4g")
    took: dict[str, Any] = {"events": events, "cores": cores, "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(dir=data) as folder:
        _warm_up(spark, folder)
        kept = _load_history(spark, events, data)
        with _measure_step(spark, took, "spans"):
            find_known_spans(marks(kept)).write.parquet(f"{folder}/spans")
        spans = spark.read.schema(KNOWN_SPANS.schema).parquet(f"{folder}/spans")
        with _measure_step(spark, took, "configs"):
            config_intervals(kept, spans).write.parquet(f"{folder}/configs")
        configs = spark.read.schema(CONFIG_INTERVALS.schema).parquet(f"{folder}/configs")
        for number in range(FOLDS):
            with _measure_step(spark, took, f"fold_{number + 1}"):
                took["leaderless_s"] = _leaderless(kept, spans, configs)
        with _measure_step(spark, took, "all_columns"):
            partition_intervals(kept, spans, configs).write.format("noop").mode("overwrite").save()
    took["fold_events_per_s"] = round(events / statistics.median(took[f"fold_{n + 1}_s"] for n in range(FOLDS)))
    spark.stop()
    return took


def measure_lines(events: int, cores: int, data: Path, *, is_skewed: bool = False) -> dict[str, Any]:
    """Measure the seconds from JSON lines on, as in `kontroller history ingest`, in this process."""
    spark = local_session("bench", cores=cores, memory="4g")
    took: dict[str, Any] = {"lines": events, "cores": cores, "load": os.getloadavg()[0]}
    lines = data / f"{'skewed-' if is_skewed else ''}lines-{events}"
    if not lines.exists():
        made = history(spark, events, is_skewed=True) if is_skewed else _load_history(spark, events, data)
        make_lines(made).coalesce(2 * cores).write.text(str(lines))
        for path in lines.glob("part-*"):
            path.rename(path.with_suffix(".jsonl"))
    with tempfile.TemporaryDirectory(dir=data) as folder:
        kept = KeptHistory.open_history(spark, folder)
        with _measure_step(spark, took, "taken_in"):
            kept.take_in_lines(journal_files.lines(spark, [str(lines)]))
        took |= _shares(kept)
        with _measure_step(spark, took, "taken_in_warm"):
            KeptHistory.open_history(spark, f"{folder}/second").take_in_lines(journal_files.lines(spark, [str(lines)]))
        with _measure_step(spark, took, "layers"):
            kept.fold()
        with _measure_step(spark, took, "taken_in_again"):
            kept.take_in_lines(journal_files.lines(spark, [str(lines)]))
        with _measure_step(spark, took, "exposure"):
            answer_all(kept.layers(), Options())[EXPOSURE].write.parquet(f"{folder}/exposure")
        with _measure_step(spark, took, "violations"):
            kept.audit().write.parquet(f"{folder}/violations")
        took["leaderless_s"] = _seconds(kept.store.read(PARTITION_INTERVALS))
        files = [path.stat().st_size for path in Path(kept.store.path(PARTITION_INTERVALS)).rglob("*.parquet")]
        took |= {"files_of_intervals": len(files), "share_of_largest_file": max(files) / sum(files)}
    took["lines_per_s"] = round(events / took["taken_in_s"])
    took["lines_warm_per_s"] = round(events / took["taken_in_warm_s"])
    took["lines_folded_per_s"] = round(events / (took["taken_in_s"] + took["layers_s"]))
    spark.stop()
    return took


def _shares(kept: KeptHistory) -> dict[str, float]:
    """Return the shares of the ingested changes in the largest topic and in the largest partition."""
    changes = kept.raw.read(RAW_EVENTS).where("not snapshot and partition is not null")
    by_topic = changes.groupBy("topic", "partition").count().groupBy("topic")
    sums = by_topic.agg(f.sum("count").alias("all"), f.max("count").alias("most"))
    topic, partition = sums.agg(f.max("all") / f.sum("all"), f.max("most") / f.sum("all")).collect()[0]
    return {"share_of_largest_topic": topic, "share_of_largest_partition": partition}


def _load_history(spark: SparkSession, events: int, data: Path) -> DataFrame:
    """Return the generated history, read from Parquet."""
    table = str(data / f"events-{events}")
    if not Path(table).exists():
        history(spark, events).write.parquet(table)
    return spark.read.schema(EVENTS.schema).parquet(table)


def _warm_up(spark: SparkSession, folder: str) -> None:
    """Run the measured steps on a small history until the compiler has done its work."""
    history(spark, TERM).write.parquet(f"{folder}/few")
    few = spark.read.schema(EVENTS.schema).parquet(f"{folder}/few")
    for _ in range(5):
        spans = find_known_spans(marks(few)).localCheckpoint()
        _leaderless(few, spans, config_intervals(few, spans).localCheckpoint())


def _cpu_s(spark: SparkSession) -> float:
    """Return the processor seconds of Spark and its Python workers so far: the only fair figure on a shared machine."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    ticks: dict[int, int] = {}
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            fields = path.read_text().rpartition(")")[2].split()
            ticks[int(path.parent.name)] = sum(map(int, fields[11:15]))  # its own, and those of children that ended
            parents[int(path.parent.name)] = int(fields[1])
    processes = {gateway.proc.pid}
    while more := {child for child, parent in parents.items() if parent in processes} - processes:
        processes |= more
    return sum(ticks[process] for process in processes) / os.sysconf("SC_CLK_TCK")


def _leaderless(events: DataFrame, spans: DataFrame, configs: DataFrame) -> float:
    return _seconds(partition_intervals(events, spans, configs).select(*PARTITION_INTERVALS.schema.fieldNames()))


def _seconds(intervals: DataFrame) -> float:
    """Return the total time in which partitions had no leader."""
    lasting = intervals.where("leader = -1").selectExpr("unix_micros(ended) - unix_micros(began) as us")
    (total,) = lasting.agg(f.sum("us")).collect()[0]
    return float(total / 1e6)


@contextmanager
def _measure_step(spark: SparkSession, took: dict[str, Any], step: str) -> Iterator[None]:
    cpu, begun = _cpu_s(spark), time.perf_counter()
    yield
    took[f"{step}_s"] = time.perf_counter() - begun
    took[f"{step}_cpu_s"] = _cpu_s(spark) - cpu


def _column(rows: DataFrame, name: str, kind: DataType) -> Column:
    if name not in rows.columns:
        return f.lit(None).cast(kind).alias(name)
    return f.col(name) if isinstance(kind, ArrayType) else f.col(name).cast(kind).alias(name)


def main(
    events: Annotated[list[int], typer.Option(help="Number of events; repeatable; 0: none")] = [10_000_000],  # noqa: B006  # typer copies it
    cores: Annotated[list[int], typer.Option(help="Number of cores; repeatable")] = [1, 2],  # noqa: B006  # typer copies it
    lines: Annotated[int, typer.Option(help="Number of ingested JSON lines; 0: none")] = TERM,
    skewed_lines: Annotated[
        int, typer.Option(help="Number of ingested lines, most of them in one topic; 0: none")
    ] = TERM,
    data: Annotated[
        Path | None, typer.Option(help="Folder that keeps the history for another run; default: a temporary one")
    ] = None,
    only: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Measure the fold, and print and save the results."""
    if only:
        assert data is not None
        skewed = partial(measure_lines, is_skewed=True)
        steps: dict[str, Measure] = {"events": measure, "lines": measure_lines, "skewed_lines": skewed}
        sys.stdout.write(json.dumps(steps[only](events[0], cores[0], data)) + "\n")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = data or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        runs = [_run("events", size, count, folder) for size in events for count in cores if size]
        runs += [_run("lines", lines, count, folder) for count in cores if lines]
        runs += [_run("skewed_lines", skewed_lines, count, folder) for count in cores if skewed_lines]
    machine = {"cpus": os.cpu_count(), "python": platform.python_version()}
    RESULTS.parent.mkdir(exist_ok=True)
    result = {"machine": machine, "runs": runs}
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")


def _run(what: str, size: int, count: int, data: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.pipeline", "--only", what, "--data", str(data)]
    command += ["--events", str(size), "--cores", str(count)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603  # this program itself
    took: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    took["at"] = datetime.now(UTC).isoformat(timespec="seconds")
    console.print(f"{size:,} {what}, {count} cores: {_format_times(took)}; load {took['load']:.1f}", soft_wrap=True)
    return took


def _format_times(took: dict[str, Any]) -> str:
    steps = [name.removesuffix("_cpu_s") for name in took if name.endswith("_cpu_s")]
    steps_took = [
        f"{step} {took[f'{step}_s']:.1f} s ({took[f'{step}_cpu_s']:.1f} s of processor time)" for step in steps
    ]
    rates = [f"{value:,} {name.replace('_per_', '/')}" for name, value in took.items() if name.endswith("_per_s")]
    return ", ".join(steps_took + rates)


if __name__ == "__main__":
    typer.run(main)
