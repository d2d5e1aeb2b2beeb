"""`kontroller import`: writes KafkaTopics for topics that have none."""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kontroller.cli.endings import EXIT_FAILED, failure, usage_error

if TYPE_CHECKING:
    from controller_operator.resources.cluster_address import ClusterAddress
    from controller_operator.settings import OperatorSettings
    from kontroller.importing.documents import Imported, Target
    from kontroller.importing.live_topics import Choice, LeftOut
    from kontroller.importing.managed_topics import KnownCluster
    from kontroller.importing.object_names import ObjectNames


def import_topics(
    cluster: Annotated[
        str | None,
        typer.Option(
            help="KafkaCluster of the topics. With --from-strimzi the default is the cluster in Strimzi's label."
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Namespace of the KafkaTopics. Default: the current one."),
    ] = None,
    cluster_namespace: Annotated[
        str | None, typer.Option(help="Namespace of the KafkaCluster, if it differs from --namespace.")
    ] = None,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            help="ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT...][/chroot], if the address in the KafkaCluster "
            "is not reachable from here."
        ),
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            help="Brokers of a cluster without ZooKeeper: HOST:PORT[,HOST:PORT...], if the bootstrapServers in the "
            "KafkaCluster are not reachable from here.",
        ),
    ] = None,
    properties: Annotated[
        list[Path] | None,
        typer.Option(
            help="File with the cluster's security settings: a broker's server.properties, or a part of it, with its "
            "zookeeper.connect. Without ZooKeeper: a client's properties with bootstrap.servers. May be repeated."
        ),
    ] = None,
    without_kubernetes: Annotated[
        bool,
        typer.Option(
            "--without-kubernetes",
            help="Do not ask an API server; treat every topic as one without a KafkaTopic. Needs --zookeeper or "
            "--bootstrap-server.",
        ),
    ] = False,
    internal: Annotated[bool, typer.Option("--internal", help="Also import Kafka's own topics.")] = False,
    replica_assignment: Annotated[
        bool,
        typer.Option(
            "--replica-assignment", help="Write the brokers of each partition instead of the replication factor."
        ),
    ] = False,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig. Default: the current one.")] = None,
    from_strimzi: Annotated[
        list[typer.FileText] | None,
        typer.Option(
            help="File with Strimzi's KafkaTopics, instead of a live cluster; - for standard input. May be repeated."
        ),
    ] = None,
) -> None:
    """Writes a KafkaTopic in YAML for each topic that has none. Applying them changes no topic.

    Writes nothing to the cluster or to Kubernetes. Topics that no KafkaTopic can describe are reported on standard
    error and as comments in the output. Exits with 0; with 1 if something failed or was reported this way; with 2 if
    the command is wrong."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # the error has the same information
    from kontroller.importing.strimzi import NoYaml, StrimziTopics

    out = _Output()
    if from_strimzi:
        if zookeeper or bootstrap or replica_assignment or without_kubernetes:
            raise usage_error(
                ValueError(
                    "--from-strimzi reads no cluster: leave out --zookeeper, --bootstrap-server, --replica-assignment and "
                    "--without-kubernetes"
                )
            )
        theirs = StrimziTopics(cluster, cluster_namespace, namespace)
        try:
            for source in from_strimzi:
                for each in theirs.read(source, with_internal=internal):
                    out.write(each)
        except NoYaml as error:
            raise failure(error) from error
        raise typer.Exit(out.exit_code)
    if cluster is None:
        raise usage_error(ValueError("name the KafkaCluster: --cluster"))
    if zookeeper and bootstrap:
        raise usage_error(ValueError("--zookeeper and --bootstrap-server exclude each other: give one"))

    from controller_core.security.properties_file import InvalidProperties
    from controller_core.zk.session import ZkError
    from controller_operator.kubernetes.api_server import NoKubernetes
    from controller_operator.kubernetes.object_api import ApiError
    from controller_operator.resources.cluster_address import AtBrokers, AtZooKeeper
    from kontroller.importing.documents import Target
    from kontroller.importing.live_topics import Choice, NoTopics
    from kontroller.importing.managed_topics import NoSuchCluster

    given = AtZooKeeper(zookeeper) if zookeeper else AtBrokers(bootstrap) if bootstrap else None
    target = Target(cluster=cluster, cluster_namespace=cluster_namespace, namespace=namespace)
    choice = Choice(with_internal=internal, pins_replicas=replica_assignment)

    async def run() -> None:
        known = None if without_kubernetes else await _read_cluster(target, context)
        address = known.address if given is None and known is not None else given
        if address is None:
            message = "--without-kubernetes needs the address of the cluster: give --zookeeper or --bootstrap-server"
            raise usage_error(ValueError(message))
        await _import_live(address, target, choice, known, out, properties or [])

    try:
        asyncio.run(run())
    except InvalidProperties as error:
        raise usage_error(error) from error
    except (NoKubernetes, NoSuchCluster, NoTopics, ApiError, ZkError) as error:
        raise failure(error) from error
    raise typer.Exit(out.exit_code)


class _Output:
    """Writes documents to standard output, and remarks about them to standard error."""

    exit_code = 0

    def write(self, imported: "Imported") -> None:
        from kontroller.importing.documents import format_yaml, list_remarks

        sys.stdout.write(format_yaml(imported))
        for line in list_remarks(imported):
            self.say(line)
        if imported.document is None:
            self.exit_code = EXIT_FAILED

    def say(self, line: str) -> None:
        typer.echo(f"kontroller import: {line}", err=True)


async def _read_cluster(target: "Target", context: str | None) -> "KnownCluster":
    from controller_operator.kubernetes.api_server import current_namespace, kubernetes_objects
    from controller_operator.kubernetes.object_store import Key
    from kontroller.importing.managed_topics import read_known_cluster

    async with kubernetes_objects(context) as objects:
        namespace = target.namespace or current_namespace(context)
        key = Key("KafkaCluster", target.cluster_namespace or namespace, target.cluster)
        return await read_known_cluster(objects, key, namespace)


async def _import_live(
    address: "ClusterAddress",
    target: "Target",
    choice: "Choice",
    known: "KnownCluster | None",
    out: _Output,
    properties: Sequence[Path],
) -> None:
    from dataclasses import replace

    from controller_operator.settings import OperatorSettings
    from kontroller.importing.live_topics import LeftOut
    from kontroller.importing.object_names import ObjectNames

    for note in known.notes if known else ():
        out.say(note)
    left_out = LeftOut()
    settings = OperatorSettings(all_namespaces=True)
    if properties:
        settings = settings.model_copy(update={"properties": tuple(properties)})
    chosen = replace(choice, managed=known.managed) if known else choice
    names = ObjectNames(known.taken if known else ())
    count = 0
    async with aclosing(_import_topics(address, settings, chosen, target, names, left_out)) as found:
        async for each in found:
            out.write(each)
            count += each.document is not None
    out.say(f"{count} topics imported; left out: {left_out}")


async def _import_topics(
    address: "ClusterAddress",
    settings: "OperatorSettings",
    choice: "Choice",
    target: "Target",
    names: "ObjectNames",
    left_out: "LeftOut",
) -> "AsyncGenerator[Imported, None]":
    from controller_operator.clusters.opening import make_poller
    from controller_operator.connecting import make_listener_finder, make_zookeeper_connector
    from controller_operator.kafka.ensembles import Ensembles
    from controller_operator.resources.cluster_address import AtZooKeeper
    from kontroller.importing.live_topics import import_seen_topics, import_topics

    if isinstance(address, AtZooKeeper):
        session = await make_zookeeper_connector(settings)(address.connect)
        try:
            async for each in import_topics(session, choice, target, names, left_out):
                yield each
        finally:
            await session.close()
        return
    poller = make_poller(address, make_listener_finder(settings, Ensembles(settings.properties)))
    poller.start()
    try:
        view = await poller.refresh()
    finally:
        await poller.stop()
    for each in import_seen_topics(view, choice, target, names, left_out):
        yield each
