"""`kontroller history watch`: raises alarms from journals while they are written. Needs no Spark."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from kontroller.cli import options
from kontroller.cli.endings import failure, usage_error
from kontroller.cli.options import (
    JournalsOption,
    JournalTokenFilesOption,
    JournalTopicOption,
    LogLevel,
    TopicBootstrapOption,
    TopicPropertiesOption,
)


def watch(
    journal: JournalsOption = None,
    journal_token_file: JournalTokenFilesOption = None,
    topic: JournalTopicOption = None,
    bootstrap_server: TopicBootstrapOption = None,
    properties: TopicPropertiesOption = None,
    leaderless_after_seconds: Annotated[
        float | None, typer.Option(help="Seconds that a partition may be without a leader. Default: 30.")
    ] = None,
    under_min_isr_after_seconds: Annotated[
        float | None,
        typer.Option(
            help="Seconds that a partition may have fewer in-sync replicas than min.insync.replicas. Default: 30."
        ),
    ] = None,
    min_insync_replicas: Annotated[
        int | None, typer.Option(help="min.insync.replicas of topics for which no record has it. Default: 1.")
    ] = None,
    alive_interval_seconds: Annotated[
        float | None, typer.Option(help="--journal-alive-interval-seconds of the controllers. Default: 10.")
    ] = None,
    silent_after_seconds: Annotated[
        float | None,
        typer.Option(help="Seconds without any record after which a cluster counts as silent. Default: 30."),
    ] = None,
    poll_interval_seconds: Annotated[
        float | None, typer.Option(help="Seconds between looks at a journal that was read to its end. Default: 1.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File for the state of the watch, so that a restart neither repeats nor forgets an alarm."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(help="File to which alarms are appended as lines of JSON; - for standard output. Default: -."),
    ] = None,
    alertmanager: Annotated[
        list[str] | None, typer.Option(help="Alertmanager, such as http://HOST:9093. May be repeated.")
    ] = None,
    alertmanager_resend_seconds: Annotated[
        float | None,
        typer.Option(help="Seconds between repeated notifications of firing alarms to Alertmanager. Default: 60."),
    ] = None,
    metrics_host: options.MetricsHost = None,
    metrics_port: options.MetricsPort = None,
    log_format: options.LogFormat = None,
    log_level: LogLevel = None,
) -> None:
    """Follows journals until it is stopped. Raises an alarm if a partition has no leader or too few in-sync replicas
    for too long, or if a cluster goes silent. Needs no Spark.

    Every option can also be set as KONTROLLER_<OPTION> in the environment. Exits with 0 when it is stopped, 1 if it
    cannot go on, 2 if the command is wrong."""
    given = {name: value for name, value in locals().items() if value not in (None, [])}

    from controller_core.process.logging import configure_logging
    from controller_core.process.settings import InvalidSettings, load
    from kontroller.history.watching.checkpoint import UnusableCheckpoint
    from kontroller.history.watching.process import run_watch
    from kontroller.history.watching.settings import WatchSettings

    try:
        settings = load(WatchSettings, given)
        configure_logging(settings.log_format, settings.log_level)
        asyncio.run(run_watch(settings))
    except (InvalidSettings, UnusableCheckpoint) as error:
        raise usage_error(error) from error
    except OSError as error:
        raise failure(error) from error
