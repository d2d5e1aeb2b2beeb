"""`kontroller record`: the journal of a cluster whose controller is somebody else, by looking on."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from kontroller.cli.endings import failure, usage_error
from kontroller.cli.options import LogLevel


def record(
    zookeeper: Annotated[str | None, typer.Option(help="ZooKeeper: HOST:PORT[,HOST:PORT...][/chroot].")] = None,
    bootstrap: Annotated[
        str | None, typer.Option(help="Or some brokers of a cluster without ZooKeeper: HOST:PORT[,HOST:PORT...].")
    ] = None,
    command_config: Annotated[
        Path | None, typer.Option(help="How those are spoken to: a file of properties, as Kafka's tools take it.")
    ] = None,
    properties: Annotated[
        Path | None, typer.Option(help="How the cluster is secured: a broker's server.properties, or a part of it.")
    ] = None,
    journal_directory: Annotated[
        Path | None, typer.Option(help="Where the journal of the cluster's state is written.")
    ] = None,
    look_interval_ms: Annotated[
        int | None, typer.Option(help="How much time passes at least between two looks at what has changed.")
    ] = None,
    zookeeper_session_timeout_ms: Annotated[int | None, typer.Option(help="ZooKeeper session timeout.")] = None,
    zookeeper_jute_maxbuffer_bytes: Annotated[
        int | None, typer.Option(help="The jute.maxbuffer of the ZooKeeper servers.")
    ] = None,
    zookeeper_timeout_ms: Annotated[int | None, typer.Option(help="Exit when ZooKeeper is away for longer.")] = None,
    bootstrap_timeout_ms: Annotated[int | None, typer.Option(help="Exit when no broker answers for longer.")] = None,
    metrics_host: Annotated[str | None, typer.Option(help="Address of /metrics, /healthz and /journal.")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Port of /metrics, /healthz and /journal.")] = None,
    journal_segment_bytes: Annotated[int | None, typer.Option(help="How large a file of it becomes.")] = None,
    journal_retention_bytes: Annotated[int | None, typer.Option(help="How much of it is kept.")] = None,
    journal_retention_hours: Annotated[int | None, typer.Option(help="How long it is kept.")] = None,
    journal_token_file: Annotated[
        Path | None, typer.Option(help="A file with the token that readers of /journal have to show.")
    ] = None,
    journal_snapshot_interval_seconds: Annotated[
        int | None, typer.Option(help="How often everything is looked at, and the whole state is written.")
    ] = None,
    journal_alive_interval_seconds: Annotated[
        int | None, typer.Option(help="After how long without a record it says that the controller is alive.")
    ] = None,
    log_format: Annotated[str | None, typer.Option(help="json or console.")] = None,
    log_level: LogLevel = None,
    settings: Annotated[Path | None, typer.Option(help="A YAML file with these settings.")] = None,
) -> None:
    """Records what changes in a cluster whose controller is Kafka's own, without ever writing to it.

    Every option can also be set as KONTROLLER_<OPTION> in the environment, or in the settings file. Exits with 1 when
    it cannot go on, 2 when something about the command or the directory is to be changed."""
    given = dict(locals())
    given.pop("settings")

    from controller_core.process.logging import configure_logging
    from controller_core.process.recording.run import run_recorder
    from controller_core.process.recording.settings import RecorderProcessSettings
    from controller_core.process.settings import InvalidSettings, load
    from controller_core.recorder.directory import UnusableDirectory
    from controller_core.recorder.looker import ClusterLost
    from controller_core.recorder.metadata_log.quorum_leader import LogRefused
    from controller_core.recorder.observed_journal import AnotherCluster
    from controller_core.wire.client.request_client import RequestError
    from controller_core.zk.session import ZkError

    try:
        loaded = load(RecorderProcessSettings, given, settings)
        configure_logging(loaded.log_format, loaded.log_level)
        asyncio.run(run_recorder(loaded))
    except (InvalidSettings, UnusableDirectory, AnotherCluster) as error:
        raise usage_error(error) from error
    except (ClusterLost, LogRefused, RequestError, ZkError, OSError) as error:
        raise failure(error) from error
