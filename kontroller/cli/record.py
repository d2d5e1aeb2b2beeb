"""`kontroller record`: records the journal of a cluster with Kafka's own controller, as an observer."""

import asyncio

import typer

from kontroller.cli import options
from kontroller.cli.endings import failure, usage_error


def record(ctx: typer.Context, settings: options.SettingsFile = None) -> None:
    """Records the changes of a cluster whose controller is Kafka's own, and never writes to the cluster.

    Every option can also be set as KONTROLLER_<OPTION> in the environment, or in the settings file. Exits with 1 if it
    cannot go on, 2 if the command or the directory has to be changed."""
    from controller_core.process.logging import configure_logging
    from controller_core.process.recording.run import run_recorder
    from controller_core.process.recording.settings import RecorderProcessSettings
    from controller_core.process.settings import InvalidSettings, load
    from controller_core.recorder.directory import UnusableDirectory
    from controller_core.recorder.looker import ClusterLost
    from controller_core.recorder.metadata_log.quorum_leader import LogRefused
    from controller_core.recorder.observed_journal import AnotherCluster
    from controller_core.zk.session import ZkError
    from kontroller import AdminError

    try:
        loaded = load(RecorderProcessSettings, ctx.obj, settings)
        configure_logging(loaded.log_format, loaded.log_level)
        asyncio.run(run_recorder(loaded))
    except (InvalidSettings, UnusableDirectory, AnotherCluster) as error:
        raise usage_error(error) from error
    except (ClusterLost, LogRefused, AdminError, ZkError, OSError) as error:
        raise failure(error) from error
