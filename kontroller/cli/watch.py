"""`kontroller history watch`: alarms on what journals say while they are written. It needs no Spark."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

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
    bootstrap: TopicBootstrapOption = None,
    properties: TopicPropertiesOption = None,
    leaderless_after_seconds: Annotated[
        float | None, typer.Option(help="For how long a partition may be without a leader (30).")
    ] = None,
    under_min_isr_after_seconds: Annotated[
        float | None, typer.Option(help="For how long one may have fewer replicas in sync than it needs (30).")
    ] = None,
    min_insync_replicas: Annotated[
        int | None, typer.Option(help="min.insync.replicas where no record says it (1).")
    ] = None,
    alive_interval_seconds: Annotated[
        float | None, typer.Option(help="What --journal-alive-interval-seconds of the controllers is (10).")
    ] = None,
    silent_after_seconds: Annotated[
        float | None, typer.Option(help="After how long without any record a cluster is silent (30).")
    ] = None,
    poll_interval_seconds: Annotated[
        float | None, typer.Option(help="How often a journal that was read to its end is looked at (1).")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A file of what stands, so that a restart repeats and forgets nothing.")
    ] = None,
    output: Annotated[
        str | None, typer.Option(help="A file that alarms are appended to as lines of JSON; - is standard output (-).")
    ] = None,
    alertmanager: Annotated[
        list[str] | None, typer.Option(help="An Alertmanager, such as http://HOST:9093. Several times for several.")
    ] = None,
    alertmanager_resend_seconds: Annotated[
        float | None, typer.Option(help="How often it is told of what stands (60).")
    ] = None,
    metrics_host: Annotated[str | None, typer.Option(help="Address of /metrics, /healthz and /readyz.")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Port of /metrics, /healthz and /readyz.")] = None,
    log_format: Annotated[str | None, typer.Option(help="json or console.")] = None,
    log_level: LogLevel = None,
) -> None:
    """Follows journals until it is stopped, and raises an alarm when a partition has no leader or too few replicas in sync
    for too long, or when nothing comes of a cluster any more. Needs no Spark.

    Every option can also be set as KONTROLLER_<OPTION> in the environment. Exits with 0 when it is stopped, with 1 when it
    cannot go on, with 2 when the command is wrong."""
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
