"""`kontroller operator`: the operator as a process, and the release of its finalizers after it ended."""

import asyncio
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from kontroller.cli import options
from kontroller.cli.endings import failure, usage_error

commands = typer.Typer(help="Run the operator, or release its resources.", no_args_is_help=True)


@commands.command("run")
def run(
    namespace: Annotated[list[str] | None, typer.Option(help="Namespace to watch. May be repeated.")] = None,
    all_namespaces: Annotated[bool | None, typer.Option("--all-namespaces", help="Watch all namespaces.")] = None,
    liveness: Annotated[str | None, typer.Option(help="Address of the liveness probe: http://HOST:PORT/PATH.")] = None,
    metrics_host: Annotated[str | None, typer.Option(help="Address to serve /metrics on. Default: 127.0.0.1.")] = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Port to serve /metrics on. Default: do not serve it.")
    ] = None,
    zookeeper_session_timeout_ms: options.ZooKeeperSessionTimeoutMs = None,
    zookeeper_jute_maxbuffer_bytes: options.ZooKeeperJuteMaxbufferBytes = None,
    properties: Annotated[
        list[Path] | None,
        typer.Option(
            help="File with a cluster's security settings: a broker's server.properties, or a part of it. May be "
            "repeated."
        ),
    ] = None,
    lease: Annotated[str | None, typer.Option(help="Lease that elects one of several operators.")] = None,
    lease_namespace: Annotated[str | None, typer.Option(help="Namespace of the Lease. Default: the pod's.")] = None,
    webhook: Annotated[str | None, typer.Option(help="Address of the validating webhook: https://HOST:PORT.")] = None,
    webhook_certificate: Annotated[
        Path | None, typer.Option(help="File with the webhook's certificate and its chain.")
    ] = None,
    webhook_key: Annotated[
        Path | None, typer.Option(help="File with the private key of the webhook's certificate.")
    ] = None,
    log_format: Annotated[
        str, typer.Option(help="Format of log lines: json or console.", envvar="KONTROLLER_LOG_FORMAT")
    ] = "json",
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        typer.Option(help="Lowest level to log: debug, info, warning or error.", envvar="KONTROLLER_LOG_LEVEL"),
    ] = "info",
) -> None:
    """Runs the operator: reconciles the resources of kontroller.dev (KafkaCluster, KafkaTopic, FeatureSet, ...) with
    clusters.

    Every option can also be set as KONTROLLER_<OPTION> in the environment. The API server is that of the pod, or of
    KUBECONFIG."""
    # Imported only here, because the Kubernetes client takes as long to import as everything else together.
    from pydantic import ValidationError

    from controller_core.process.logging import configure_logging
    from controller_core.process.settings import make_invalid_settings
    from controller_core.security.properties_file import InvalidProperties
    from controller_operator.kubernetes.api_server import NoKubernetes
    from controller_operator.kubernetes.object_api import ApiRefused
    from controller_operator.kubernetes.watcher import WatchEnded
    from controller_operator.leading.leadership import NotLeading
    from controller_operator.main import run as run_operator
    from controller_operator.settings import OperatorSettings

    given: dict[str, Any] = {
        "namespaces": namespace,
        "all_namespaces": all_namespaces,
        "liveness": liveness,
        "metrics_host": metrics_host,
        "metrics_port": metrics_port,
        "zookeeper_session_timeout_ms": zookeeper_session_timeout_ms,
        "zookeeper_jute_maxbuffer_bytes": zookeeper_jute_maxbuffer_bytes,
        "properties": properties or None,
        "lease": lease,
        "lease_namespace": lease_namespace,
        "webhook": webhook,
        "webhook_certificate": webhook_certificate,
        "webhook_key": webhook_key,
    }
    try:
        settings = OperatorSettings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise usage_error(make_invalid_settings(error, OperatorSettings)) from error
    configure_logging(log_format, log_level)
    try:
        asyncio.run(run_operator(settings))
    except InvalidProperties as error:
        raise usage_error(error) from error
    except (NoKubernetes, ApiRefused, NotLeading, WatchEnded, OSError) as error:
        raise failure(error) from error


@commands.command("release")
def release(
    namespace: Annotated[list[str] | None, typer.Option(help="Namespace to release. May be repeated.")] = None,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", help="Release all namespaces.")] = False,
) -> None:
    """Removes the operator's finalizer from all resources, so that they can be deleted without an operator.

    Topics, features and data stay as they are. End the operator first: a running operator adds the finalizer again."""
    from controller_operator.kubernetes.api_server import NoKubernetes, kubernetes_objects
    from controller_operator.kubernetes.object_api import ApiError
    from controller_operator.kubernetes.release import release_all

    if all_namespaces == bool(namespace):
        raise usage_error(ValueError("give either --namespace or --all-namespaces"))

    async def let_go() -> int:
        count = 0
        async with kubernetes_objects() as objects:
            async for key in release_all(objects, namespace or ()):
                typer.echo(f"released {key}")
                count += 1
        return count

    try:
        count = asyncio.run(let_go())
    except (NoKubernetes, ApiError) as error:
        raise failure(error) from error
    typer.echo(f"{count} resources released")
