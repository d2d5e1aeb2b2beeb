"""`kontroller history`: takes journals in, audits them, and reports what they say. Needs Spark: the extra `pipeline`.

The watch alone (`kontroller.cli.watch`) does without."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from zoneinfo import available_timezones

import typer

from controller_core.model.wording import format_count
from kontroller.cli.endings import EXIT_FAILED, failure, usage_error
from kontroller.cli.options import (
    JournalsOption,
    JournalTokenFilesOption,
    JournalTopicOption,
    TopicBootstrapOption,
    TopicPropertiesOption,
)
from kontroller.cli.watch import watch

if TYPE_CHECKING:
    from kontroller.history.generations.keeping import Keeping
    from kontroller.history.kept_history import KeptHistory
    from kontroller.history.reports.objective import Objective
    from kontroller.history.reports.report import ReportSummary
    from kontroller.history.sources.journal_tokens import JournalTokens

commands = typer.Typer(
    help="What journals of the controller show: availability, failovers, violations, alarms. All but `watch` run Apache "
    "Spark on this machine.",
    no_args_is_help=True,
)

_MEMORY: Final = re.compile(r"[1-9][0-9]*[mg]")
_TIMES: Final = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]
_MOST_DAYS: Final = 36_500
_SHOWN: Final = 20
"""Violations that are printed; the table has them all."""

HistoryOption = Annotated[
    str,
    typer.Option(
        "--history",
        help="Where the tables are kept: a folder, or an address that Spark can write to.",
        envvar="KONTROLLER_HISTORY",
        show_default=False,
    ),
]
CoresOption = Annotated[
    int, typer.Option("--cores", help="How many cores Spark uses.", envvar="KONTROLLER_HISTORY_CORES", min=1)
]
MemoryOption = Annotated[
    str, typer.Option("--memory", help="Memory of Spark's process, such as 2g.", envvar="KONTROLLER_HISTORY_MEMORY")
]


class WrongOption(Exception):
    """The command has to be changed; the message says how."""


commands.command("watch")(watch)


@commands.command("ingest")
def ingest(
    history: HistoryOption,
    journal: JournalsOption = None,
    journal_token_file: JournalTokenFilesOption = None,
    kafka_logs: Annotated[
        list[str] | None,
        typer.Option(
            help="A folder with state-change.log and controller.log of a broker, rotated and gzipped ones too."
        ),
    ] = None,
    cluster_id: Annotated[
        str | None, typer.Option(help="The cluster that --kafka-logs are of, as /cluster/id in ZooKeeper has it.")
    ] = None,
    topic: JournalTopicOption = None,
    bootstrap: TopicBootstrapOption = None,
    properties: TopicPropertiesOption = None,
    jars: Annotated[
        str,
        typer.Option(
            help="The jars with which Spark reads from Kafka, separated by commas. Without them Spark has them, as in the "
            "image, or fetches them from Maven Central.",
            show_default=False,
        ),
    ] = "",
    logs_time_zone: Annotated[
        str, typer.Option(help="The brokers' time zone, such as Europe/Berlin: Kafka logs local times.")
    ] = "UTC",
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="How the tables are kept: parquet, or delta, which readers of Delta Lake can read, too. Said once, it "
            "holds from then on.",
            show_default="parquet",
        ),
    ] = None,
    keep_days: Annotated[
        list[str] | None,
        typer.Option(
            help="[TABLE=]DAYS: for how many days readers of Delta Lake can go back to what a table was, or all tables "
            "that are not named. Several times.",
            show_default="7",
        ),
    ] = None,
    cores: CoresOption = 2,
    memory: MemoryOption = "2g",
) -> None:
    """Takes journals in and folds them into the tables of the history. What was taken in before is not taken in twice.

    Exits with 0; with 1 when something could not be read, and says what; with 2 when the command is wrong."""
    journals, logs = journal or [], kafka_logs or []
    if not journals and not logs and not topic:
        raise usage_error(
            WrongOption(
                "say what to take in: --journal FOLDER, --journal http://HOST:9404/journal, --topic NAME with --bootstrap, "
                "or --kafka-logs FOLDER"
            )
        )
    if bool(topic) != bool(bootstrap):
        raise usage_error(WrongOption("--topic and --bootstrap go together: give both, or neither"))
    if logs and not cluster_id:
        raise usage_error(WrongOption("Kafka's logs do not say which cluster they are of: give its --cluster-id"))
    if logs_time_zone not in available_timezones():
        raise usage_error(WrongOption(f"--logs-time-zone {logs_time_zone} is unknown: give one such as Europe/Berlin"))
    asked = _asked(format_, keep_days or [])
    tokens = _tokens(journal_token_file or [], journals)
    options = _options(properties)
    topics = [(topic, bootstrap)] if topic and bootstrap else []
    places = [*journals, *logs, *(f"kafka://{address}/{name}" for name, address in topics)]
    with _kept(history, cores, memory, taken_in=places, jars=jars if topics else None, asked=asked) as kept:
        from kontroller.history import intake

        with kept.hold_lock():
            unread = intake.take_in_journals(kept, journals, tokens)
            unread += intake.take_in_kafka_logs(kept, logs, cluster_id=cluster_id or "", time_zone=logs_time_zone)
            for name, address in topics:
                unread += _take_in_topic(kept, name, address, options)
            if len(unread) < len(places):
                kept.fold()
                typer.echo(kept.summary())
        for problem in unread:
            typer.echo(f"kontroller: {problem}", err=True)
        if unread:
            raise typer.Exit(EXIT_FAILED)


@commands.command("compact")
def compact(
    history: HistoryOption,
    forget_days: Annotated[
        int | None,
        typer.Option(
            help="Forget what is older than so many days before the end of what is known of its cluster.",
            min=1,
            max=_MOST_DAYS,
            show_default="nothing",
        ),
    ] = None,
    cores: CoresOption = 2,
    memory: MemoryOption = "2g",
) -> None:
    """Keeps less: of each day one snapshot of those that were proven to say nothing new, and nothing that is too old.

    What is forgotten is gone, also from reports; the history then begins at a snapshot. Exits with 0; with 1 when there is
    no history or it cannot be changed; with 2 when the command is wrong."""
    with _kept(history, cores, memory) as kept:
        gone = kept.compact(forget_days)
        typer.echo(
            f"Left out: {format_count(gone.entries, 'record')} of {format_count(gone.snapshots, 'snapshot')} that said "
            f"nothing new. Forgotten: {format_count(gone.forgotten, 'record')}."
        )
        typer.echo(kept.summary())


@commands.command("audit")
def audit(history: HistoryOption, cores: CoresOption = 2, memory: MemoryOption = "2g") -> None:
    """Holds the history to the invariants of a controller, and prints what violates them. A report has the proofs as well.

    Exits with 0 when nothing does, with 1 when something does, with 2 when the command is wrong."""
    with _kept(history, cores, memory) as whole, whole.open_snapshot() as kept:
        violations = kept.audit().persist()
        count = violations.count()
        for row in violations.limit(_SHOWN).collect():
            where = f" {row.topic}" if row.topic is not None else ""
            where += f"-{row.partition}" if row.partition is not None else ""
            typer.echo(f"{row.invariant}{where} (epoch {row.controller_epoch}, record {row.seq}): {row.detail}")
        if count > _SHOWN:
            typer.echo(f"... and {count - _SHOWN:,} more, which a report has in its table violations")
        typer.echo(f"{count:,} violations." if count else "No violation.")
        if count:
            raise typer.Exit(EXIT_FAILED)


@commands.command("report")
def report(
    history: HistoryOption,
    output: Annotated[Path, typer.Option(help="The folder that index.html and the tables are written to.")],
    from_: Annotated[
        datetime | None, typer.Option("--from", help="Where the period begins (UTC).", formats=_TIMES)
    ] = None,
    to: Annotated[datetime | None, typer.Option("--to", help="Where it ends (UTC).", formats=_TIMES)] = None,
    days: Annotated[
        int | None, typer.Option(help="Begin so many days before the end, instead of --from.", min=1)
    ] = None,
    cluster: Annotated[
        list[str] | None, typer.Option(help="The id of a cluster: of this one alone. Several times.")
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(help="PATTERN=NAME: topics that the pattern is found in belong to that namespace. Several times."),
    ] = None,
    stalled_after_seconds: Annotated[
        int, typer.Option(help="A reassignment without any progress for so long counts as stalled.", min=1)
    ] = 3600,
    objective: Annotated[
        float | None,
        typer.Option(
            help="Percent of their time that partitions shall have a leader, such as 99.9; the page shows the budget.",
            show_default=False,
        ),
    ] = None,
    broker_session_timeout_ms: Annotated[
        int,
        typer.Option(
            help="zookeeper.session.timeout.ms of the brokers, the longest: for so long at most a broker that died was not "
            "noticed. Added in figures of their own.",
            min=0,
        ),
    ] = 18_000,
    cores: CoresOption = 2,
    memory: MemoryOption = "2g",
) -> None:
    """Answers from the history: one HTML page, and the tables (Parquet and JSON) beside it. By default of all of it.

    Exits with 0; with 1 when there is no history or something cannot be written; with 2 when the command is wrong."""
    if days and from_:
        raise usage_error(WrongOption("--days and --from both say where the period begins: give one of them"))
    promised = _promised(objective)
    with _kept(history, cores, memory) as whole, whole.open_snapshot() as kept:
        from kontroller.history.answers.options import Options

        try:
            options = Options(
                namespaces=_pairs(namespace or []),
                stalled_after_seconds=stalled_after_seconds,
                broker_session_timeout_ms=broker_session_timeout_ms,
            )
            period = kept.period(began=_utc(from_), ended=_utc(to), days=days)
        except ValueError as error:
            raise WrongOption(str(error)) from error
        typer.echo(_in_words(kept.report(output, options, period, promised, clusters=cluster or [])))


def _promised(percent: float | None) -> "Objective | None":
    """The objective, before Spark is started for it; ends the command where it makes no sense."""
    from kontroller.history.reports.objective import Objective

    try:
        return None if percent is None else Objective(percent=percent)
    except ValueError as error:
        raise usage_error(WrongOption(f"--objective: {error}")) from error


def _tokens(files: Sequence[str], journals: Sequence[str]) -> "JournalTokens":
    """What is shown to whoever serves a journal; ends the command where it cannot be."""
    from kontroller.history.sources.journal_tokens import JournalTokens

    try:
        return JournalTokens.parse(files, journals)
    except ValueError as error:
        raise usage_error(WrongOption(f"--journal-token-file: {error}")) from error


def _asked(table_format: str | None, keep_days: Sequence[str]) -> "Keeping":
    """How tables are to be kept; ends the command where that makes no sense."""
    from kontroller.history.generations.keeping import Format, Keeping

    if table_format not in (None, *Format):
        raise usage_error(WrongOption(f"--format {table_format} is none: give parquet or delta"))
    days: dict[str, int] = {}
    for said in keep_days:
        table, _, number = said.rpartition("=")
        if not number.isdecimal() or not 0 < int(number) <= _MOST_DAYS:
            raise usage_error(
                WrongOption(f"--keep-days {said}: give DAYS or TABLE=DAYS, from 1 to {_MOST_DAYS:,} days")
            )
        days[table] = int(number)
    return Keeping(format=Format(table_format) if table_format else None, days=days)


def _options(properties: Path | None) -> dict[str, str]:
    """What Spark's client of Kafka is told of certificates and logins; ends the command where that cannot be used."""
    from controller_core.process.connections import secured_brokers
    from controller_core.process.settings import InvalidSettings
    from controller_core.wire.connections.java_clients import java_properties

    try:
        told = java_properties(secured_brokers(properties).read().read_inter_broker_security())
    except InvalidSettings as error:
        raise usage_error(error) from error
    return {f"kafka.{name}": value for name, value in told.items()}


def _take_in_topic(kept: "KeptHistory", topic: str, bootstrap: str, options: Mapping[str, str]) -> list[str]:
    """Takes in what is new in a topic; returns why it could not be read."""
    from kontroller.history.pipelines.topic import TopicUnreadable, ingest_topic
    from kontroller.history.sources.kafka_topic import NoConnector

    try:
        ingest_topic(kept, topic, bootstrap, options)
    except (NoConnector, TopicUnreadable) as error:
        return [str(error)]
    return []


@contextmanager
def _kept(
    location: str,
    cores: int,
    memory: str,
    *,
    taken_in: Sequence[str] = (),
    jars: str | None = None,
    asked: "Keeping | None" = None,
) -> Iterator["KeptHistory"]:
    """The history at a location, on a Spark that ends with the block; errors end the command in one line.

    `jars`: None where nothing is read from Kafka, else as `connector_settings` takes them. `asked`: as in
    `KeptHistory.open_history`."""
    if not _MEMORY.fullmatch(memory):
        raise usage_error(WrongOption(f"--memory {memory} is no amount of memory: give one such as 2g or 1500m"))
    try:
        import pyspark  # noqa: F401  # asked for here, so that the message can say what to install
    except ModuleNotFoundError as error:
        raise usage_error(WrongOption("Spark is not installed: in a checkout, pip install '.[pipeline]'")) from error
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from kontroller.history.generations.errors import StoreError
    from kontroller.history.generations.keeping import OTHERS
    from kontroller.history.kept_history import RAW, KeptHistory, NoHistory
    from kontroller.history.schemas import LAYERS
    from kontroller.history.session import NoJava, is_small, session
    from kontroller.history.sources.kafka_topic import connector_settings

    known = [table.name for table in (*RAW, *LAYERS)]
    unknown = sorted({*(asked.days if asked else ())} - {OTHERS, *known})
    if unknown:
        raise usage_error(WrongOption(f"--keep-days {unknown[0]}=...: there are the tables {', '.join(known)}"))
    try:
        small = is_small([location, *taken_in])
        more = None if jars is None else connector_settings(jars)
        with session("kontroller history", cores=cores, memory=memory, is_small=small, more=more) as spark:
            yield KeptHistory.open_history(spark, location, asked)
    except WrongOption as error:
        raise usage_error(error) from error
    except (NoHistory, NoJava, StoreError, OSError) as error:
        raise failure(error) from error
    except PySparkException as error:
        raise failure(RuntimeError(_first_line(str(error)))) from error
    except Py4JJavaError as error:
        raise failure(RuntimeError(_first_line(str(error.java_exception)))) from error


def _in_words(summary: "ReportSummary") -> str:
    """The page in a few lines."""
    known = (
        "Nothing is known of this time." if summary.availability is None else f"{summary.availability:.4%} available."
    )
    return (
        f"{known} {format_count(summary.unclean_elections, 'unclean election')}, "
        f"{format_count(summary.violations, 'violation')}, {format_count(summary.findings, 'finding')}.\n{summary.page}"
    )


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.replace(tzinfo=UTC)


def _pairs(texts: list[str]) -> tuple[tuple[str, str], ...]:
    """`PATTERN=NAME`, split at the last `=`. Raises `ValueError`."""
    pairs = [text.rpartition("=") for text in texts]
    for pattern, separator, _ in pairs:
        if not separator or not pattern:
            raise ValueError("--namespace: give PATTERN=NAME, such as --namespace '^shop[.]=shop'")
    return tuple((pattern, name) for pattern, _, name in pairs)


def _first_line(said: str) -> str:
    """What Spark says, without its plan and its Java."""
    return said.strip().splitlines()[0]
