"""`kontroller history watch`: raises alarms from journals while they are written. Needs no Spark."""

import asyncio

import typer

from kontroller.cli.endings import failure, usage_error


def watch(ctx: typer.Context) -> None:
    """Follows journals until it is stopped. Raises an alarm if a partition has no leader or too few in-sync replicas
    for too long, or if a cluster goes silent. Needs no Spark.

    Every option can also be set as KONTROLLER_<OPTION> in the environment. Exits with 0 when it is stopped, 1 if it
    cannot go on, 2 if the command is wrong."""
    from controller_core.process.logging import configure_logging
    from controller_core.process.settings import InvalidSettings, load
    from kontroller.history.watching.checkpoint import UnusableCheckpoint
    from kontroller.history.watching.process import run_watch
    from kontroller.history.watching.settings import WatchSettings

    try:
        settings = load(WatchSettings, ctx.obj)
        configure_logging(settings.log_format, settings.log_level)
        asyncio.run(run_watch(settings))
    except (InvalidSettings, UnusableCheckpoint) as error:
        raise usage_error(error) from error
    except OSError as error:
        raise failure(error) from error
