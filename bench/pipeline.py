"""How fast Spark folds a history on this machine: from events, and from JSON lines, to seconds without a leader.

The history is made up, and looks like a month of a busy cluster: 20,000 partitions with three replicas in 1,000 topics, and
a term, with a snapshot of everything, each million records. Of the changes between, 70 % are of the ISR, 24 % elect another
leader, 1 % leave none, and 5 % change the assignment. All follows from a record's number, so it is the same each time.

    python -m bench.pipeline --events 10000000 --cores 1 --cores 2

Each number of cores is a process of its own. What was measured is printed, and kept in bench/results/pipeline.json.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType
from rich.console import Console

from controller_pipeline.schemas import EVENTS, KNOWN_SPANS, PARTITION_INTERVALS
from controller_pipeline.session import local_session
from controller_pipeline.sources import journal_files
from controller_pipeline.transforms import layers
from controller_pipeline.transforms.config_intervals import config_intervals
from controller_pipeline.transforms.known_spans import known_spans
from controller_pipeline.transforms.partition_intervals import partition_intervals

PARTITIONS: Final = 20_000
IN_TOPIC: Final = 20
TERM: Final = 1_000_000
"""Records of a controller epoch, of which the first 41,003 begin it: all topics, assignments and leaderships."""
RESULTS: Final = Path(__file__).parent / "results" / "pipeline.json"

console = Console(highlight=False)


def history(spark: SparkSession, events: int) -> DataFrame:
    """So many events, in the columns of `schemas.EVENTS`."""
    topics = PARTITIONS // IN_TOPIC
    ended = 2 + topics + 2 * PARTITIONS
    place = {
        "seq": f"id % {TERM}",
        "controller_epoch": f"id div {TERM} + 1",
        "luck": "pmod(xxhash64(id), 100)",
        "number": f"pmod(if(id % {TERM} < {ended}, id % {TERM} - 2 - {topics}, hash(id)), {PARTITIONS})",
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


def as_json(events: DataFrame) -> DataFrame:
    """The lines that a journal of these events would have."""
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
    """Seconds of each step, by one process."""
    spark = local_session("bench", cores=cores, memory="4g", shuffle_partitions=8)
    took: dict[str, Any] = {"events": events, "cores": cores}
    table, lines = str(data / f"events-{events}"), str(data / f"lines-{events}")
    if not Path(table).exists():
        _timed(lambda: history(spark, events).write.parquet(table))
    if not Path(lines).exists():
        _timed(lambda: as_json(spark.read.parquet(table)).coalesce(2 * cores).write.text(lines))
        for path in Path(lines).glob("part-*"):
            path.rename(path.with_suffix(".jsonl"))
    kept = spark.read.schema(EVENTS.schema).parquet(table)
    with tempfile.TemporaryDirectory(dir=data) as folder:
        took["spans_s"] = _timed(lambda: known_spans(kept).write.parquet(f"{folder}/spans"))
        spans = spark.read.schema(KNOWN_SPANS.schema).parquet(f"{folder}/spans")
        begun = _cpu_s(spark)
        took["fold_s"], took["leaderless_s"] = _leaderless(kept, spans)
        took["fold_cpu_s"] = _cpu_s(spark) - begun
        took["all_columns_s"] = _timed(lambda: _intervals(kept, spans).write.format("noop").mode("overwrite").save())
        begun = time.perf_counter()
        found, _ = layers.ingest(journal_files.lines(spark, [lines]))
        found.write.parquet(f"{folder}/events")
        found = spark.read.schema(EVENTS.schema).parquet(f"{folder}/events")
        known_spans(found).write.parquet(f"{folder}/spans-of-lines")
        spans = spark.read.schema(KNOWN_SPANS.schema).parquet(f"{folder}/spans-of-lines")
        _, again = _leaderless(found, spans)
        took["from_lines_s"] = time.perf_counter() - begun
    if again != took["leaderless_s"]:
        raise SystemExit(f"the lines come to {again} s without a leader, the events to {took['leaderless_s']} s")
    took["fold_events_per_s"] = round(events / took["fold_s"])
    took["lines_per_s"] = round(events / took["from_lines_s"])
    spark.stop()
    return took


def _cpu_s(spark: SparkSession) -> float:
    """What Spark has used of the processors so far: the only fair figure where others use them, too."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    process = gateway.proc.pid
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _intervals(events: DataFrame, spans: DataFrame) -> DataFrame:
    intervals = partition_intervals(events, spans, config_intervals(events, spans))
    return intervals.select(*PARTITION_INTERVALS.schema.fieldNames())


def _leaderless(events: DataFrame, spans: DataFrame) -> tuple[float, float]:
    """The seconds that it takes, and the seconds that partitions had no leader."""
    begun = time.perf_counter()
    lasting = _intervals(events, spans).where("leader = -1").selectExpr("unix_micros(ended) - unix_micros(began) as us")
    (total,) = lasting.agg(f.sum("us")).collect()[0]
    return time.perf_counter() - begun, total / 1e6


def _timed(step: Callable[[], None]) -> float:
    begun = time.perf_counter()
    step()
    return time.perf_counter() - begun


def _column(rows: DataFrame, name: str, kind: DataType) -> Column:
    if name not in rows.columns:
        return f.lit(None).cast(kind).alias(name)
    return f.col(name) if isinstance(kind, ArrayType) else f.col(name).cast(kind).alias(name)


def main(
    events: Annotated[list[int], typer.Option(help="How many events; several times for several sizes")] = [10_000_000],  # noqa: B006  # typer copies it
    cores: Annotated[list[int], typer.Option(help="On how many cores; several times for several numbers")] = [1, 2],  # noqa: B006  # typer copies it
    data: Annotated[
        Path | None, typer.Option(help="Where the history is kept for another time; none: it is not")
    ] = None,
    only: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Measure the fold, and print and keep what was measured."""
    if only:
        assert data is not None
        sys.stdout.write(json.dumps(measure(events[0], cores[0], data)) + "\n")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = data or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        runs = [_run(size, count, folder) for size in events for count in cores]
    machine = {"cpus": os.cpu_count(), "load": os.getloadavg()[0], "python": platform.python_version()}
    RESULTS.parent.mkdir(exist_ok=True)
    result = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine, "runs": runs}
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")


def _run(size: int, count: int, data: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.pipeline", "--only", "--data", str(data)]
    command += ["--events", str(size), "--cores", str(count)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603  # this program itself
    took: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    console.print(
        f"{size:,} events, {count} cores: fold {took['fold_s']:.1f} s = {took['fold_events_per_s']:,} events/s"
        f" ({took['fold_cpu_s']:.1f} s of processor time);"
        f" known spans {took['spans_s']:.1f} s; all columns {took['all_columns_s']:.1f} s;"
        f" from JSON lines {took['from_lines_s']:.1f} s = {took['lines_per_s']:,} lines/s"
    )
    return took


if __name__ == "__main__":
    typer.run(main)
