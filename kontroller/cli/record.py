"""`kontroller record`: records the journal of a cluster with Kafka's own controller, as an observer."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from kontroller.cli import options
from kontroller.cli.endings import failure, usage_error
from kontroller.cli.options import LogLevel


def record(
    zookeeper: options.ZooKeeperServers = None,
    bootstrap_server: Annotated[
        str | None, typer.Option(help="Brokers of a cluster without ZooKeeper: HOST:PORT[,HOST:PORT...].")
    ] = None,
    command_config: Annotated[
        Path | None,
        typer.Option(
            help="File of client properties for --bootstrap-server, as for Kafka's tools: security.protocol, ..."
        ),
    ] = None,
    properties: options.ClusterProperties = None,
    journal_directory: options.JournalDirectory = None,
    look_interval_ms: Annotated[
        int | None, typer.Option(help="Least milliseconds between two reads of changes. Default: 100.")
    ] = None,
    zookeeper_session_timeout_ms: options.ZooKeeperSessionTimeoutMs = None,
    zookeeper_jute_maxbuffer_bytes: options.ZooKeeperJuteMaxbufferBytes = None,
    zookeeper_timeout_ms: options.ZooKeeperTimeoutMs = None,
    bootstrap_timeout_ms: Annotated[
        int | None,
        typer.Option(
            help="Milliseconds without an answer of any broker after which the process exits. Default: 60000."
        ),
    ] = None,
    metrics_host: options.MetricsHost = None,
    metrics_port: options.MetricsPort = None,
    journal_segment_bytes: options.JournalSegmentBytes = None,
    journal_retention_bytes: options.JournalRetentionBytes = None,
    journal_retention_hours: options.JournalRetentionHours = None,
    journal_token_file: options.JournalTokenFile = None,
    journal_snapshot_interval_seconds: options.JournalSnapshotIntervalSeconds = None,
    journal_alive_interval_seconds: options.JournalAliveIntervalSeconds = None,
    log_format: options.LogFormat = None,
    log_level: LogLevel = None,
    settings: options.SettingsFile = None,
) -> None:
    """Records the changes of a cluster whose controller is Kafka's own, and never writes to the cluster.

    Every option can also be set as KONTROLLER_<OPTION> in the environment, or in the settings file. Exits with 1 if it
    cannot go on, 2 if the command or the directory has to be changed."""
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
