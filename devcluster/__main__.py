"""`python -m devcluster build` fills the cache; `up` and `try` run a cluster until Ctrl-C."""

import signal
from contextlib import ExitStack, suppress
from typing import Annotated

import typer

from devcluster.building import progress
from devcluster.building.cache import cache_folder
from devcluster.building.toolchain import BuildError, MissingToolError
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import kubernetes_api
from devcluster.clusters.run_folder import RunFolder, run_folder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.filling.fill import fill_cache
from devcluster.filling.parts import Part
from devcluster.images import Image
from devcluster.node.pods import NoCluster, cluster_with_pods, plan_preparation
from devcluster.running.processes import ConditionTimeoutError, StartError, exit_on_sigterm

application = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)


@application.command()
def build(
    parts: Annotated[list[Part] | None, typer.Argument(help="Parts to fetch and build. Default: all of them.")] = None,
    politely: Annotated[
        bool, typer.Option(help="Build at a low priority until another process waits for the same part.")
    ] = False,
) -> None:
    """Fetch and build the servers into the cache. This takes seconds if everything is there."""
    with exit_on_sigterm():
        fill_cache(parts or tuple(Part), politely=politely)
    typer.echo(f"Everything is in {cache_folder()}")


@application.command("up")
def run_servers(
    brokers: Annotated[int, typer.Option(min=0, help="Number of Kafka brokers.")] = 3,
    kubernetes: Annotated[bool, typer.Option(help="Also start a Kubernetes API server.")] = False,
    kraft: Annotated[bool, typer.Option(help="Run Kafka 4 with its own controllers, without ZooKeeper.")] = False,
) -> None:
    """Run ZooKeeper, brokers and, if asked, a Kubernetes API server until Ctrl-C."""
    with ExitStack() as stack:
        stack.enter_context(exit_on_sigterm())
        folder = stack.enter_context(run_folder("up"))
        kafka = _cluster(folder, brokers, stack, kraft=kraft)
        stack.enter_context(kafka)
        typer.echo(f"Kafka        {kafka.bootstrap_servers}")
        if kubernetes:
            typer.echo(f"Kubernetes   export KUBECONFIG={stack.enter_context(kubernetes_api(folder)).kubeconfig}")
        typer.echo(f"Logs         {folder.path / 'logs'}\nCtrl-C ends everything.")
        signal.pause()


def _cluster(folder: RunFolder, brokers: int, stack: ExitStack, *, kraft: bool) -> KafkaCluster | KRaftCluster:
    if kraft:
        return KRaftCluster(folder, brokers=brokers)
    zookeeper = stack.enter_context(ZooKeeper(folder))
    typer.echo(f"ZooKeeper    {zookeeper.connect}")
    return KafkaCluster(folder, zookeeper, brokers=brokers)


@application.command("try")
def try_images(
    kraft: Annotated[bool, typer.Option(help="Load Kafka 4 instead of Kafka 3.9 and ZooKeeper.")] = False,
) -> None:
    """Run a Kubernetes cluster with our images until Ctrl-C, and print how to use kubectl and helm on it.

    It is a cluster of kind if Docker or Podman runs, otherwise a node without a container engine.
    """
    images = (Image.KONTROLLER, Image.KAFKA_4 if kraft else Image.KAFKA)
    with ExitStack() as stack:
        stack.enter_context(exit_on_sigterm())
        preparation = plan_preparation(images)
        with progress.stages("Kubernetes with the images", len(preparation) + 1) as advance:
            for stage in preparation:
                stage()
                advance()
            folder = stack.enter_context(run_folder("try"))
            with progress.step("Starting Kubernetes and loading the images"):
                pods = stack.enter_context(cluster_with_pods(folder, images))
            advance()
        typer.echo(f"Ready. In another shell:\n\n    export PATH={pods.kubernetes.write_clients()}:$PATH\n")
        typer.echo("Then kubectl, helm and `kubectl kontroller` work on it, from any folder. Ctrl-C ends everything.")
        if pods.images:
            registry = pods.images.rstrip("/")
            typer.echo(f"Add `--set image.registry={registry}` to helm install: the nodes pull the images from there.")
        with suppress(KeyboardInterrupt):
            signal.pause()
        with progress.step("Ending everything"):
            stack.close()


def main() -> None:
    try:
        application()
    except (BuildError, ConditionTimeoutError, MissingToolError, NoCluster, StartError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
