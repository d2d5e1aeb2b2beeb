"""`kontroller history`: ingests journals, audits them, and reports on them. Needs the extra `pipeline`.

Only `changes`, `at`, `diff`, the watch (`kontroller.cli.watch`) and the server (`kontroller.cli.serve`) do not need it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final, cast
from zoneinfo import available_timezones

import typer

from controller_core.journal import LINE_BYTES, SEGMENT_BYTES
from controller_core.model.wording import format_count
from kontroller.cli.administering.output import Format, Output, show
from kontroller.cli.endings import EXIT_FAILED, failure, usage_error
from kontroller.cli.option_groups import add_command
from kontroller.cli.options import (
    JournalTopicOption,
    TopicBootstrapOption,
    TopicPropertiesOption,
)
from kontroller.cli.serve import serve
from kontroller.cli.settings_options import take_settings
from kontroller.cli.watch import watch
from kontroller.history.engine.choice import Engine, NotHere, choose
from kontroller.history.reports.period import MOST_DAYS
from kontroller.history.reports.words import format_bounds
from kontroller.history.sources.caps import JOURNAL_BYTES, Caps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kontroller.history.generations.keeping import Keeping
    from kontroller.history.kept_history import KeptHistory
    from kontroller.history.past_state import Things
    from kontroller.history.reports.names import Names
    from kontroller.history.reports.objective import Objective
    from kontroller.history.reports.report import ReportSummary
    from kontroller.history.sources.journal_tls import JournalTls
    from kontroller.history.sources.journal_tokens import JournalTokens

commands = typer.Typer(
    help="Availability, failovers, violations and alarms, from the controller's journals. All commands but "
    "`watch`, `serve`, `changes`, `at` and `diff` run Apache Spark on this machine; `ingest`, `report` and `audit` "
    "only if the history is large, or for journals that are served.",
    no_args_is_help=True,
)

_MEMORY: Final = re.compile(r"[1-9][0-9]*[mg]")
_TIMES: Final = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]
_MOST_DAYS: Final = 36_500
_SHOWN: Final = 20
"""Violations that are printed, of which the table has all, and problems of journals."""
_TopicOption = Annotated[
    list[str] | None, typer.Option("--topic", help="Show only this topic. May be repeated.", show_default=False)
]
_EngineOption = Annotated[
    Engine,
    typer.Option(
        help="Engine: spark (Apache Spark, which needs Java), duckdb (in this process), or auto: spark, but duckdb if "
        "the history and the journals are small and on this machine, or if there is no Java.",
        envvar="KONTROLLER_HISTORY_ENGINE",
    ),
]


class WrongOption(Exception):
    """The command has to be changed. The message says how."""


@dataclass(frozen=True, kw_only=True)
class OnSpark:
    """A history, and the Spark that works on it."""

    history: Annotated[
        str,
        typer.Option(
            help="Folder of the tables, or an address that Spark can write to.",
            envvar="KONTROLLER_HISTORY",
            show_default=False,
        ),
    ]
    cores: Annotated[
        int, typer.Option(help="Cores that Spark or DuckDB uses.", envvar="KONTROLLER_HISTORY_CORES", min=1)
    ] = 2
    memory: Annotated[
        str, typer.Option(help="Memory of Spark or DuckDB, such as 2g.", envvar="KONTROLLER_HISTORY_MEMORY")
    ] = "2g"

    @contextmanager
    def open(
        self,
        *,
        taken_in: Sequence[str] = (),
        jars: str | None = None,
        asked: "Keeping | None" = None,
        engine: Engine = Engine.SPARK,
    ) -> Iterator["KeptHistory"]:
        """Open the history, on an engine that ends with the block. Errors end the command in one line.

        `jars`: the argument of `connector_settings`; None if nothing is read from Kafka. `asked`: the argument of
        `KeptHistory.open_history`."""
        if not _MEMORY.fullmatch(self.memory):
            raise usage_error(
                WrongOption(f"--memory {self.memory} is not an amount of memory: give one such as 2g or 1500m")
            )
        try:
            import pyspark  # noqa: F401  # asked for here, so that the message can say what to install
        except ModuleNotFoundError as error:
            raise usage_error(
                WrongOption("Spark is not installed: in a checkout, pip install '.[pipeline]'")
            ) from error
        chosen = self._choose(engine, taken_in)
        from duckdb import Error as DuckDBError
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        from kontroller.history.engine.session import open_session
        from kontroller.history.generations.errors import StoreError
        from kontroller.history.generations.keeping import OTHERS
        from kontroller.history.kept_history import RAW, KeptHistory, NoHistory
        from kontroller.history.schemas import LAYERS
        from kontroller.history.session import NoJava, find_size, session
        from kontroller.history.sources.kafka_topic import connector_settings

        known = [table.name for table in (*RAW, *LAYERS)]
        unknown = sorted({*(asked.days if asked else ())} - {OTHERS, *known})
        if unknown:
            raise usage_error(
                WrongOption(f"--keep-days {unknown[0]}=...: there is no such table; the tables are {', '.join(known)}")
            )
        try:
            size = find_size([f"{self.history}/raw", *taken_in])
            more = None if jars is None else connector_settings(jars)
            opened = (
                open_session(cores=self.cores, memory=self.memory)
                if chosen is Engine.DUCKDB
                else session("kontroller history", cores=self.cores, memory=self.memory, size=size, more=more)
            )
            with opened as spark:
                yield KeptHistory.open_history(cast("SparkSession", spark), self.history, asked)
        except WrongOption as error:
            raise usage_error(error) from error
        except (NoHistory, NoJava, StoreError, OSError) as error:
            raise failure(error) from error
        except (PySparkException, DuckDBError) as error:
            raise failure(RuntimeError(_find_first_line(str(error)))) from error
        except Py4JJavaError as error:
            raise failure(RuntimeError(_find_first_line(str(error.java_exception)))) from error

    def _choose(self, asked: Engine, taken_in: Sequence[str]) -> Engine:
        """Return the engine, say that it is DuckDB, and prepare the imports of this process for it."""
        try:
            chosen = choose(asked, self.history, taken_in)
        except NotHere as error:
            raise usage_error(WrongOption(str(error))) from error
        if chosen is Engine.DUCKDB:
            from kontroller.history.engine.activation import activate, is_possible

            if not is_possible():
                if asked is Engine.DUCKDB:
                    raise usage_error(WrongOption("--engine duckdb: this process has already used Spark"))
                return Engine.SPARK
            typer.echo("Computing with DuckDB in this process (--engine spark: with Spark)", err=True)
            activate()
        return chosen


@dataclass(frozen=True, kw_only=True)
class Journals:
    """Journals to read, and the access to those that servers offer."""

    journal: Annotated[
        list[str] | None,
        typer.Option(help="Folder of journal files, or a controller's http://HOST:9404/journal. May be repeated."),
    ] = None
    journal_token_file: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[URL=]FILE",
            help="File with the token for the journal at URL; without URL, for all journals that have no other token. "
            "May be repeated.",
        ),
    ] = None
    journal_ca: Annotated[
        Path | None,
        typer.Option(
            help="File with the authorities of https:// journals, as PEM. Default: those of the system.",
            show_default=False,
        ),
    ] = None
    journal_certificate: Annotated[
        Path | None,
        typer.Option(
            help="File with the certificate to show to https:// journals, as PEM. Default: none.", show_default=False
        ),
    ] = None
    journal_key: Annotated[
        Path | None,
        typer.Option(
            help="File with the key of --journal-certificate, as PEM. Default: that file has the key, too.",
            show_default=False,
        ),
    ] = None

    @contextmanager
    def open(self) -> Iterator[tuple[list[Path], list[str]]]:
        """Yield the folders of the journals, copied if they are served, and the problems. Errors end the command in one
        line."""
        from kontroller.history.past_state import SeveralClusters
        from kontroller.history.sources.journal_copies import fetch
        from kontroller.history.sources.journal_http import JournalUnreadable

        tokens, tls = self.read_tokens(), self.read_tls()
        if not self.journal:
            raise usage_error(
                WrongOption("say where the journal is: --journal FOLDER or --journal http://HOST:9404/journal")
            )
        with TemporaryDirectory() as below:
            try:
                folders: list[Path] = []
                problems: list[str] = []
                for each in self.journal:
                    if each.startswith(("http://", "https://")):
                        copied = fetch(each, Path(below), tokens, tls)
                        problems += copied.problems
                        folders.append(copied.folder)
                    else:
                        folders.append(Path(each))
                if missing := [str(folder) for folder in folders if not folder.is_dir()]:
                    raise usage_error(WrongOption(f"--journal {missing[0]} is not a folder on this machine"))
                yield folders, problems
            except SeveralClusters as error:
                raise usage_error(WrongOption(f"{error}: give the journals of one cluster")) from error
            except (JournalUnreadable, OSError) as error:
                raise failure(error) from error

    def read_tokens(self) -> "JournalTokens":
        """Return the tokens for the servers of journals. Ends the command if they cannot be used."""
        from kontroller.history.sources.journal_tokens import JournalTokens

        try:
            return JournalTokens.parse(self.journal_token_file or [], self.journal or [])
        except ValueError as error:
            raise usage_error(WrongOption(f"--journal-token-file: {error}")) from error

    def read_tls(self) -> "JournalTls":
        """Return the certificates for served journals. Ends the command if they cannot be used."""
        from kontroller.history.sources.journal_tls import JournalTls, UnusableCertificates

        if self.journal_key is not None and self.journal_certificate is None:
            raise usage_error(WrongOption("--journal-key needs --journal-certificate"))
        tls = JournalTls(authorities=self.journal_ca, certificate=self.journal_certificate, key=self.journal_key)
        try:
            tls.context()
        except UnusableCertificates as error:
            raise usage_error(WrongOption(f"certificates of --journal: {error}")) from error
        return tls


commands.command("watch", cls=take_settings("kontroller.history.watching.settings:WatchSettings"))(watch)
commands.command("serve", cls=take_settings("kontroller.history.serving.settings:ServeSettings"))(serve)


@add_command(commands, "ingest")
def ingest(
    on_spark: OnSpark,
    read: Journals,
    kafka_logs: Annotated[
        list[str] | None,
        typer.Option(
            help="Folder with state-change.log and controller.log of a broker, including rotated and gzipped files. "
            "May be repeated."
        ),
    ] = None,
    cluster_id: Annotated[
        str | None, typer.Option(help="Cluster of --kafka-logs, as in /cluster/id in ZooKeeper.")
    ] = None,
    topic: JournalTopicOption = None,
    bootstrap: TopicBootstrapOption = None,
    properties: TopicPropertiesOption = None,
    jars: Annotated[
        str,
        typer.Option(
            help="Jars with Spark's Kafka connector, separated by commas. Default: those of the image, or from Maven "
            "Central.",
            show_default=False,
        ),
    ] = "",
    logs_time_zone: Annotated[
        str, typer.Option(help="Time zone of the brokers, such as Europe/Berlin, because Kafka logs local times.")
    ] = "UTC",
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Format of the tables: parquet, or delta for readers of Delta Lake. Once set, it is kept.",
            show_default="parquet",
        ),
    ] = None,
    keep_days: Annotated[
        list[str] | None,
        typer.Option(
            help="[TABLE=]DAYS for which readers of Delta Lake can go back to older versions of a table; without "
            "TABLE, of all other tables. May be repeated.",
            show_default="7",
        ),
    ] = None,
    max_line_bytes: Annotated[
        int,
        typer.Option(
            help="Bytes of a line of a file. Longer lines are left out and reported.", min=1 << 10, max=1 << 30
        ),
    ] = LINE_BYTES,
    max_file_bytes: Annotated[
        int,
        typer.Option(
            help="Bytes of a file that a server lists, and of the contents of a compressed file. Larger ones are left "
            "out and reported.",
            min=1 << 16,
        ),
    ] = SEGMENT_BYTES,
    max_journal_bytes: Annotated[
        int,
        typer.Option(
            help="Bytes of all files that a server lists. Those beyond are left out and reported.", min=1 << 16
        ),
    ] = JOURNAL_BYTES,
    engine: _EngineOption = Engine.AUTO,
) -> None:
    """Ingests journals into the tables of the history. Records that were ingested before are skipped.

    Exits with 0; with 1 if something could not be read (and prints what); with 2 if the command is wrong."""
    journals, logs = read.journal or [], kafka_logs or []
    if not journals and not logs and not topic:
        raise usage_error(
            WrongOption(
                "say what to take in: --journal FOLDER, --journal http://HOST:9404/journal, --topic NAME with "
                "--bootstrap-server, or --kafka-logs FOLDER"
            )
        )
    if bool(topic) != bool(bootstrap):
        raise usage_error(WrongOption("--topic and --bootstrap-server go together: give both, or neither"))
    if logs and not cluster_id:
        raise usage_error(
            WrongOption("--kafka-logs needs --cluster-id, because Kafka's logs do not name their cluster")
        )
    if logs_time_zone not in available_timezones():
        raise usage_error(WrongOption(f"--logs-time-zone {logs_time_zone} is unknown: give one such as Europe/Berlin"))
    asked = _parse_keeping(format_, keep_days or [])
    caps = Caps(line_bytes=max_line_bytes, file_bytes=max_file_bytes, journal_bytes=max_journal_bytes)
    tokens, tls = read.read_tokens(), read.read_tls()
    options = _read_security_options(properties)
    topics = [(topic, bootstrap)] if topic and bootstrap else []
    places = [*journals, *logs, *(f"kafka://{address}/{name}" for name, address in topics)]
    if logs or topics:
        if engine is Engine.DUCKDB:
            raise usage_error(WrongOption("--engine duckdb reads only --journal: give --engine spark"))
        engine = Engine.SPARK
    with on_spark.open(taken_in=places, jars=jars if topics else None, asked=asked, engine=engine) as kept:
        from kontroller.history import intake

        access = intake.Access(tokens=tokens, tls=tls, caps=caps)
        with kept.hold_lock():
            taken = [
                intake.take_in_journals(kept, journals, access),
                intake.take_in_kafka_logs(
                    kept, logs, cluster_id=cluster_id or "", time_zone=logs_time_zone, access=access
                ),
            ]
            for name, address in topics:
                failures = _take_in_topic(kept, name, address, options)
                taken.append(intake.Taken(not failures, failures))
            if any(each.is_read for each in taken):
                kept.fold()
                typer.echo(kept.summary())
        _end_with([problem for each in taken for problem in each.problems])


@add_command(commands, "changes")
def changes(
    topic: Annotated[str, typer.Option(help="The topic.", show_default=False)],
    read: Journals,
    output: Output = Format.TABLE,
) -> None:
    """Lists the changes of a topic in journals: when, who asked for it from which address, what, and the cause. Needs
    no Spark.

    Exits with 0; with 1 if a part of a journal is missing or cannot be read; with 2 if the command is wrong."""
    from kontroller.history.topic_changes import list_changes

    with read.open() as (folders, problems):
        found = list(list_changes(topic, *folders, problems=problems))
    heads = ("TIME", "PRINCIPAL", "ADDRESS", "WHAT", "CAUSE")
    rows = [
        (
            "-" if each.time is None else f"{each.time:%Y-%m-%d %H:%M:%S.%f}"[:-3],
            each.principal or "-",
            each.address or "-",
            each.what,
            each.cause,
        )
        for each in found
    ]
    show(output, [each.make_json() for each in found], heads, rows, empty=f"No change of {topic} is in these journals.")
    if more := problems[_SHOWN:]:
        problems[_SHOWN:] = [f"... and {len(more):,} more problems"]
    _end_with(problems)


@add_command(commands, "at")
def show_past(
    time: Annotated[datetime, typer.Argument(help="The moment (UTC).", formats=_TIMES)],
    read: Journals,
    topic: _TopicOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Shows a cluster as it was at a moment: topics, replicas, leaders, ISRs, brokers and configurations. Needs no
    Spark.

    Exits with 0; with 1 if the state of that moment is not known, there was no such topic, or a journal cannot be read;
    with 2 if the command is wrong."""
    from kontroller.history.past_state import say_thing

    with read.open() as (folders, problems):
        things = _read_things(time, topic, folders, problems) or {}
    problems += [] if problems else _list_missing(topic, f"at {time:%Y-%m-%d %H:%M:%S}", things)
    rows = [(name, say_thing(thing)) for name, thing in things.items()]
    show(output, [{"name": name, **thing} for name, thing in things.items()], ("WHAT", "STATE"), rows, empty="")
    _end_with(problems)


@add_command(commands, "diff")
def diff(
    before: Annotated[datetime, typer.Argument(help="The earlier moment (UTC).", formats=_TIMES)],
    after: Annotated[datetime, typer.Argument(help="The later moment (UTC).", formats=_TIMES)],
    read: Journals,
    topic: _TopicOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Shows how a cluster differs between two moments. Needs no Spark.

    Exits with 0; with 1 if the state of a moment is not known, there was no such topic at both, or a journal cannot be
    read; with 2 if the command is wrong."""
    from kontroller.history.past_state import find_differences, say_thing

    if before > after:
        raise usage_error(WrongOption(f"{before} is later than {after}: swap them, the earlier moment comes first"))
    with read.open() as (folders, problems):
        old, new = (_read_things(time, topic, folders, problems) for time in (before, after))
    # Without a last known state of both moments, everything would seem to be new or gone.
    found = [] if old is None or new is None else list(find_differences(old, new))
    problems += [] if problems else _list_missing(topic, "at either moment", old or {}, new or {})
    rows = [(each.name, say_thing(each.before), say_thing(each.after)) for each in found]
    show(
        output,
        [{"name": each.name, "before": each.before, "after": each.after} for each in found],
        ("WHAT", "BEFORE", "AFTER"),
        rows,
        empty="" if problems else "Nothing differs.",
    )
    _end_with(problems)


def _read_things(time: datetime, topics: list[str] | None, folders: list[Path], problems: list[str]) -> "Things | None":
    """Return the things of a cluster at a moment, or None if no state before it is known. Add a problem if the state is
    not known at that moment."""
    from kontroller.history.past_state import read_past

    past = read_past(round(time.replace(tzinfo=UTC).timestamp() * 1_000_000), *folders, topics=topics or ())
    if not past.is_known:
        problems.append(f"the state at {time:%Y-%m-%d %H:%M:%S} is not known: {past.why_unknown}")
    return past.things


def _list_missing(topics: list[str] | None, when: str, *states: "Things") -> list[str]:
    """Return a problem for each of these topics that is in none of the states."""
    return [
        f"no topic {topic} existed {when}"
        for topic in topics or ()
        if not any(f"topic {topic}" in things for things in states)
    ]


def _end_with(problems: Sequence[str]) -> None:
    for problem in problems:
        typer.echo(f"kontroller: {problem}", err=True)
    if problems:
        raise typer.Exit(EXIT_FAILED)


@add_command(commands, "compact")
def compact(
    on_spark: OnSpark,
    forget_days: Annotated[
        int | None,
        typer.Option(
            help="Days to keep, counted back from the last known record of a cluster. Older records are deleted.",
            min=1,
            max=_MOST_DAYS,
            show_default="nothing",
        ),
    ] = None,
) -> None:
    """Shrinks the history: keeps one snapshot a day of those that are proven redundant, and deletes records that are
    too old.

    Deleted records are gone, also from reports; the history then begins at a snapshot. Exits with 0; with 1 if there is
    no history or it cannot be changed; with 2 if the command is wrong."""
    with on_spark.open() as kept:
        gone = kept.compact(forget_days)
        typer.echo(
            f"Left out: {format_count(gone.entries, 'record')} of {format_count(gone.snapshots, 'snapshot')} that said "
            f"nothing "
            f"new. Forgotten: {format_count(gone.forgotten, 'record')}."
        )
        typer.echo(kept.summary())


@add_command(commands, "audit")
def audit(on_spark: OnSpark, engine: _EngineOption = Engine.AUTO) -> None:
    """Checks the history against the invariants of a controller, and prints the violations. A report also has the
    proofs.

    Exits with 0 if there is none, 1 if there are some, 2 if the command is wrong."""
    with on_spark.open(engine=engine) as whole, whole.open_snapshot() as kept:
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


@add_command(commands, "report")
def report(
    on_spark: OnSpark,
    output: Annotated[Path, typer.Option(help="Folder for index.html and the tables.")],
    from_: Annotated[datetime | None, typer.Option("--from", help="Begin of the period (UTC).", formats=_TIMES)] = None,
    to: Annotated[datetime | None, typer.Option("--to", help="End of the period (UTC).", formats=_TIMES)] = None,
    days: Annotated[
        int | None, typer.Option(help="Length of the period in days, instead of --from.", min=1, max=MOST_DAYS)
    ] = None,
    cluster: Annotated[list[str] | None, typer.Option(help="Id of a cluster to report on. May be repeated.")] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(help="PATTERN=NAME: topics that match the pattern belong to namespace NAME. May be repeated."),
    ] = None,
    stalled_after_seconds: Annotated[
        int, typer.Option(help="Seconds without progress after which a reassignment counts as stalled.", min=1)
    ] = 3600,
    objective: Annotated[
        float | None,
        typer.Option(
            help="Percent of the time for which partitions must have a leader, such as 99.9. The page shows the error "
            "budget.",
            show_default=False,
        ),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            help="YAML file with names, environments and owners of clusters and topics (docs/history.md).",
            show_default=False,
        ),
    ] = None,
    broker_session_timeout_ms: Annotated[
        int,
        typer.Option(
            help="Largest zookeeper.session.timeout.ms of the brokers: a dead broker may go unnoticed for this time. The "
            "report counts it separately.",
            min=0,
        ),
    ] = 18_000,
    engine: _EngineOption = Engine.AUTO,
) -> None:
    """Reports on the history, or on a period of it: one HTML page, and the tables (Parquet and JSON) beside it.

    Exits with 0; with 1 if there is no history or something cannot be written; with 2 if the command is wrong."""
    if days and from_:
        raise usage_error(WrongOption("--days and --from both set the begin of the period: give one"))
    promised, named = _parse_objective(objective), _read_names(names)
    now = datetime.now(UTC)
    with on_spark.open(engine=engine) as whole, whole.open_snapshot() as kept:
        from kontroller.history.answers.options import Options

        try:
            options = Options(
                namespaces=_parse_pairs(namespace or []),
                stalled_after_seconds=stalled_after_seconds,
                broker_session_timeout_ms=broker_session_timeout_ms,
            )
            period = kept.period(began=_set_utc(from_), ended=_set_utc(to), days=days, now=now)
        except ValueError as error:
            raise WrongOption(str(error)) from error
        written = kept.report(output, options, period, promised, clusters=cluster or [], names=named, now=now)
        typer.echo(_describe(written))


def _read_names(path: Path | None) -> "Names | None":
    """Return the names of a file. Ends the command before Spark starts if they cannot be used."""
    from kontroller.history.reports.names import UnusableNames, read_names

    try:
        return None if path is None else read_names(path)
    except UnusableNames as error:
        raise usage_error(WrongOption(f"--names: {error}")) from error


def _parse_objective(percent: float | None) -> "Objective | None":
    """Return the objective. Ends the command before Spark starts if the percentage makes no sense."""
    from kontroller.history.reports.objective import Objective

    try:
        return None if percent is None else Objective(percent=percent)
    except ValueError as error:
        raise usage_error(WrongOption(f"--objective: {error}")) from error


def _parse_keeping(table_format: str | None, keep_days: Sequence[str]) -> "Keeping":
    """Return the requested format and retention of tables. Ends the command if they make no sense."""
    from kontroller.history.generations.keeping import Format, Keeping

    if table_format not in (None, *Format):
        raise usage_error(WrongOption(f"--format {table_format} is unknown: give parquet or delta"))
    days: dict[str, int] = {}
    for said in keep_days:
        table, _, number = said.rpartition("=")
        if not number.isdecimal() or not 0 < int(number) <= _MOST_DAYS:
            raise usage_error(
                WrongOption(f"--keep-days {said}: give DAYS or TABLE=DAYS, from 1 to {_MOST_DAYS:,} days")
            )
        days[table] = int(number)
    return Keeping(format=Format(table_format) if table_format else None, days=days)


def _read_security_options(properties: Path | None) -> dict[str, str]:
    """Return the security options of Spark's Kafka client. Ends the command if the properties cannot be used."""
    from kontroller import InvalidArgument
    from kontroller.servers import read_java_properties

    try:
        told = read_java_properties(properties)
    except InvalidArgument as error:
        raise usage_error(error) from error
    return {f"kafka.{name}": value for name, value in told.items()}


def _take_in_topic(kept: "KeptHistory", topic: str, bootstrap: str, options: Mapping[str, str]) -> list[str]:
    """Ingest the new records of a topic. Return the reasons why it could not be read."""
    from kontroller.history.pipelines.topic import TopicUnreadable, ingest_topic
    from kontroller.history.sources.kafka_topic import NoConnector

    try:
        ingest_topic(kept, topic, bootstrap, options)
    except (NoConnector, TopicUnreadable) as error:
        return [str(error)]
    return []


def _describe(summary: "ReportSummary") -> str:
    """Return the result of a report in a few lines."""
    known = (
        "Nothing is known of this time." if summary.bounds is None else f"{format_bounds(summary.bounds)} available."
    )
    return (
        f"{known} {format_count(summary.unclean_elections, 'unclean election')}, "
        f"{format_count(summary.violations, 'violation')}, {format_count(summary.findings, 'finding')}.\n{summary.page}"
    )


def _set_utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.replace(tzinfo=UTC)


def _parse_pairs(texts: list[str]) -> tuple[tuple[str, str], ...]:
    """Split `PATTERN=NAME` at the last `=`. Raises `ValueError`."""
    pairs = [text.rpartition("=") for text in texts]
    for pattern, separator, _ in pairs:
        if not separator or not pattern:
            raise ValueError("--namespace: give PATTERN=NAME, such as --namespace '^shop[.]=shop'")
    return tuple((pattern, name) for pattern, _, name in pairs)


def _find_first_line(said: str) -> str:
    """Return Spark's error message without its plan and its Java stack trace."""
    return said.strip().splitlines()[0]
