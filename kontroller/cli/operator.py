"""`kontroller operator`: the operator as a process, and what is left to do when it has ended."""

import asyncio
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from kontroller.cli.endings import failure, usage_error

commands = typer.Typer(help="The operator.", no_args_is_help=True)


@commands.command("run")
def run(
    namespace: Annotated[list[str] | None, typer.Option(help="A namespace to watch; may be given again.")] = None,
    all_namespaces: Annotated[bool | None, typer.Option("--all-namespaces", help="Watch all namespaces.")] = None,
    liveness: Annotated[str | None, typer.Option(help="Where to answer probes: http://HOST:PORT/PATH.")] = None,
    metrics_host: Annotated[str | None, typer.Option(help="Address of /metrics.")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Port of /metrics.")] = None,
    zookeeper_session_timeout_ms: Annotated[int | None, typer.Option(help="ZooKeeper session timeout.")] = None,
    zookeeper_jute_maxbuffer_bytes: Annotated[
        int | None, typer.Option(help="The jute.maxbuffer of the ZooKeeper servers.")
    ] = None,
    properties: Annotated[
        list[Path] | None,
        typer.Option(
            help="How a cluster is secured: a broker's server.properties, or a part of it; may be given again."
        ),
    ] = None,
    lease: Annotated[str | None, typer.Option(help="The Lease that says which of several works.")] = None,
    lease_namespace: Annotated[str | None, typer.Option(help="Its namespace; none: that of the pod.")] = None,
    webhook: Annotated[
        str | None, typer.Option(help="Where to answer whether an object may be as asked: https://HOST:PORT.")
    ] = None,
    webhook_certificate: Annotated[
        Path | None, typer.Option(help="The file of its certificate, with its chain.")
    ] = None,
    webhook_key: Annotated[Path | None, typer.Option(help="The file of the certificate's key.")] = None,
    log_format: Annotated[str, typer.Option(help="json or console.", envvar="KONTROLLER_LOG_FORMAT")] = "json",
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        typer.Option(help="The least severe lines to log.", envvar="KONTROLLER_LOG_LEVEL"),
    ] = "info",
) -> None:
    """Turns the resources of kontroller.dev (KafkaCluster, KafkaTopic, FeatureSet, ...) into what a controller acts on.

    Every option can also be set as KONTROLLER_<OPTION> in the environment. The API server is that of the pod, or of
    KUBECONFIG."""
    # Loaded for an operator alone: the client of Kubernetes takes as long to import as everything else.
    from pydantic import ValidationError

    from controller_core.process.logging import configure_logging
    from controller_core.process.settings import invalid
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
        raise usage_error(invalid(error)) from error
    configure_logging(log_format, log_level)
    try:
        asyncio.run(run_operator(settings))
    except InvalidProperties as error:
        raise usage_error(error) from error
    except (NoKubernetes, ApiRefused, NotLeading, WatchEnded, OSError) as error:
        raise failure(error) from error


@commands.command("release")
def release(
    namespace: Annotated[list[str] | None, typer.Option(help="A namespace; may be given again.")] = None,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", help="All namespaces.")] = False,
) -> None:
    """Takes the operator's finalizer off all resources, so that they can be deleted when no operator runs any more.

    Topics, features and data stay as they are. End the operator first: while it runs, it puts the finalizer back."""
    from controller_operator.kubernetes.api_server import NoKubernetes, kubernetes_objects
    from controller_operator.kubernetes.object_api import ApiError
    from controller_operator.kubernetes.release import release_all

    if all_namespaces == bool(namespace):
        raise usage_error(ValueError("say where: either namespaces (--namespace) or all of them (--all-namespaces)"))

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
