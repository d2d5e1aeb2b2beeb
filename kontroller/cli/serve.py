"""`kontroller history serve`: serves the latest report. Needs no Spark."""

import asyncio

import typer

from kontroller.cli.endings import failure, usage_error


def serve(ctx: typer.Context) -> None:
    """Serves the report of a folder over HTTP until it is stopped: the page, its tables, a link for each cluster
    (/clusters/ID), and its service levels as metrics. Needs no Spark.

    Every option can also be set as KONTROLLER_<OPTION> in the environment. Exits with 0 when it is stopped, 1 if it
    cannot go on, 2 if the command is wrong."""
    from controller_core.process.logging import configure_logging
    from controller_core.process.settings import InvalidSettings, load
    from kontroller.history.serving.process import run_server
    from kontroller.history.serving.settings import ServeSettings

    try:
        settings = load(ServeSettings, ctx.obj)
        configure_logging(settings.log_format, settings.log_level)
        asyncio.run(run_server(settings))
    except InvalidSettings as error:
        raise usage_error(error) from error
    except OSError as error:
        raise failure(error) from error
