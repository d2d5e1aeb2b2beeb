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
            help="The KafkaCluster that has the topics. With --from-strimzi by default that of Strimzi's label."
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", "-n", help="The namespace that the KafkaTopics are for; by default the current one."
        ),
    ] = None,
    cluster_namespace: Annotated[
        str | None, typer.Option(help="The namespace of the KafkaCluster, where it is another.")
    ] = None,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            help="ZooKeeper, HOST:PORT[,HOST:PORT...][/chroot], where the KafkaCluster's own does not lead from here."
        ),
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option(
            help="Brokers of a cluster without ZooKeeper, HOST:PORT[,HOST:PORT...], where the KafkaCluster's own "
            "bootstrapServers do not lead there from here."
        ),
    ] = None,
    properties: Annotated[
        list[Path] | None,
        typer.Option(
            help="How the cluster is secured: a broker's server.properties, or a part of it, with its zookeeper.connect. "
            "Without ZooKeeper a client's properties, with bootstrap.servers."
        ),
    ] = None,
    without_kubernetes: Annotated[
        bool,
        typer.Option(
            "--without-kubernetes",
            help="Ask no API server: no topic counts as having a KafkaTopic. Needs --zookeeper or --bootstrap.",
        ),
    ] = False,
    internal: Annotated[bool, typer.Option("--internal", help="Import Kafka's own topics, too.")] = False,
    replica_assignment: Annotated[
        bool,
        typer.Option(
            "--replica-assignment", help="Write the brokers of each partition instead of the replication factor."
        ),
    ] = False,
    context: Annotated[
        str | None, typer.Option(help="A context of the kubeconfig; by default the current one.")
    ] = None,
    from_strimzi: Annotated[
        list[typer.FileText] | None,
        typer.Option(
            help="A file with KafkaTopics of Strimzi's, instead of a live cluster; - reads them from standard input."
        ),
    ] = None,
) -> None:
    """Writes the topics of a cluster that have no KafkaTopic yet as KafkaTopics, in YAML. To apply them changes no topic.

    Nothing is written to the cluster or to Kubernetes. What no KafkaTopic can say is told on standard error, and is a
    comment in the output. Exits with 0; with 1 when something failed or is such a comment; with 2 when the command is
    wrong."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # what it has to say is in the error
    from kontroller.importing.strimzi import NoYaml, StrimziTopics

    out = _Output()
    if from_strimzi:
        if zookeeper or bootstrap or replica_assignment or without_kubernetes:
            raise usage_error(ValueError("--from-strimzi asks no cluster: leave out what is about one"))
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
        raise usage_error(ValueError("a cluster is read from one of both: give --zookeeper or --bootstrap"))

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
        known = None if without_kubernetes else await _known(target, context)
        address = known.address if given is None and known is not None else given
        if address is None:
            message = "--without-kubernetes needs to know where the cluster is: give --zookeeper or --bootstrap"
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
    """Standard output with the documents, and standard error with what there is to say about them."""

    exit_code = 0

    def write(self, imported: "Imported") -> None:
        from kontroller.importing.documents import as_yaml, said

        sys.stdout.write(as_yaml(imported))
        for line in said(imported):
            self.say(line)
        if imported.document is None:
            self.exit_code = EXIT_FAILED

    def say(self, line: str) -> None:
        typer.echo(f"kontroller import: {line}", err=True)


async def _known(target: "Target", context: str | None) -> "KnownCluster":
    from controller_operator.kubernetes.api_server import current_namespace, kubernetes_objects
    from controller_operator.kubernetes.object_store import Key
    from kontroller.importing.managed_topics import known_cluster

    async with kubernetes_objects(context) as objects:
        namespace = target.namespace or current_namespace(context)
        key = Key("KafkaCluster", target.cluster_namespace or namespace, target.cluster)
        return await known_cluster(objects, key, namespace)


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
    async with aclosing(_imported(address, settings, chosen, target, names, left_out)) as found:
        async for each in found:
            out.write(each)
            count += each.document is not None
    out.say(f"{count} topics imported; left out: {left_out}")


async def _imported(
    address: "ClusterAddress",
    settings: "OperatorSettings",
    choice: "Choice",
    target: "Target",
    names: "ObjectNames",
    left_out: "LeftOut",
) -> "AsyncGenerator[Imported, None]":
    from controller_operator.clusters.opening import make_poller
    from controller_operator.connecting import make_listener_finder, zookeeper_connector
    from controller_operator.kafka.ensembles import Ensembles
    from controller_operator.resources.cluster_address import AtZooKeeper
    from kontroller.importing.live_topics import import_seen_topics, import_topics

    if isinstance(address, AtZooKeeper):
        session = await zookeeper_connector(settings)(address.connect)
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
