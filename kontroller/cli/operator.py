"""`kontroller operator`: the operator as a process, and the release of its finalizers after it ended."""

import asyncio
from typing import Annotated

import typer

from kontroller.cli.endings import failure, usage_error
from kontroller.cli.settings_options import take_settings

commands = typer.Typer(help="Run the operator, or release its resources.", no_args_is_help=True)


@commands.command("run", cls=take_settings("controller_operator.settings:OperatorSettings"))
def run(ctx: typer.Context) -> None:
    """Runs the operator: reconciles the resources of kontroller.dev (KafkaCluster, KafkaTopic, FeatureSet, ...) with
    clusters.

    Every option can also be set as KONTROLLER_<OPTION> in the environment. The API server is that of the pod, or of
    KUBECONFIG."""
    # Imported only here, because the Kubernetes client takes as long to import as everything else together.
    from controller_core.process.logging import configure_logging
    from controller_core.process.settings import InvalidSettings, load
    from controller_core.rules.topic_rules import InvalidRules
    from controller_core.security.properties_file import InvalidProperties
    from controller_operator.kubernetes.api_server import NoKubernetes
    from controller_operator.kubernetes.object_api import ApiRefused
    from controller_operator.kubernetes.watcher import WatchEnded
    from controller_operator.leading.leadership import NotLeading
    from controller_operator.main import run as run_operator
    from controller_operator.settings import OperatorSettings

    try:
        settings = load(OperatorSettings, ctx.obj)
    except InvalidSettings as error:
        raise usage_error(error) from error
    configure_logging(settings.log_format, settings.log_level)
    try:
        asyncio.run(run_operator(settings))
    except (InvalidProperties, InvalidRules, InvalidSettings) as error:
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
