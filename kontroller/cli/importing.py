"""`kontroller import`: writes KafkaTopics for topics that have none, and RebalancePlans for Strimzi's KafkaRebalances."""

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from kontroller.cli.endings import EXIT_FAILED, failure, usage_error

if TYPE_CHECKING:
    from controller_operator.resources.cluster_address import ClusterAddress
    from controller_operator.settings import OperatorSettings
    from kontroller.importing.declared import Given
    from kontroller.importing.documents import Imported, LeftOut, Target
    from kontroller.importing.live_topics import Choice
    from kontroller.importing.managed_topics import KnownCluster
    from kontroller.importing.object_names import ObjectNames


def import_topics(
    cluster: Annotated[
        str | None,
        typer.Option(help="KafkaCluster of the topics. With --from the default is the cluster that the file names."),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", "-n", help="Namespace of the objects. Default: that in the file, or the current one."
        ),
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
    from_files: Annotated[
        list[typer.FileBinaryRead] | None,
        typer.Option(
            "--from",
            help="File with topics of another tool, instead of a live cluster; - for standard input. May be repeated. "
            "Formats: KafkaTopics of Strimzi, koperator, Confluent for Kubernetes and Jikkou; topicctl; julie-ops; the "
            "state of Terraform; KafkaRebalances of Strimzi.",
        ),
    ] = None,
    default_partitions: Annotated[
        int | None,
        typer.Option(min=1, help="With --from: partitions of topics if the file does not set them."),
    ] = None,
    default_replication_factor: Annotated[
        int | None,
        typer.Option(min=1, help="With --from: replicas of topics if the file does not set them."),
    ] = None,
) -> None:
    """Writes a KafkaTopic in YAML for each topic that has none. Applying them changes no topic.

    With --from, also writes a RebalancePlan for each KafkaRebalance of Strimzi. It moves nothing until it is approved.

    Writes nothing to the cluster or to Kubernetes. Topics that no KafkaTopic can describe are reported on standard
    error and as comments in the output. Exits with 0; with 1 if something failed or was reported this way; with 2 if
    the command is wrong."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # the error has the same information
    out = _Output()
    if from_files:
        if zookeeper or bootstrap or properties or replica_assignment or without_kubernetes or context:
            message = (
                "--from reads no cluster: leave out --zookeeper, --bootstrap-server, --properties, --replica-assignment, "
                "--without-kubernetes and --context"
            )
            raise usage_error(ValueError(message))
        from kontroller.importing.declared import Given

        users = Given(
            cluster=cluster,
            cluster_namespace=cluster_namespace,
            namespace=namespace,
            default_partitions=default_partitions,
            default_replication_factor=default_replication_factor,
            with_internal=internal,
        )
        _import_files([(_name_file(each), each.read()) for each in from_files], users, out)
        raise typer.Exit(out.exit_code)
    if default_partitions or default_replication_factor:
        raise usage_error(
            ValueError("--default-partitions and --default-replication-factor are for --from: a cluster knows them")
        )
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

    def __init__(self) -> None:
        self.exit_code = 0
        self._written = Counter(topic=0)

    def write(self, imported: "Imported") -> None:
        """Write the result for a topic or a KafkaRebalance."""
        from kontroller.importing.documents import format_yaml, list_remarks

        sys.stdout.write(format_yaml(imported))
        for line in list_remarks(imported):
            self.say(line)
        if imported.document is None:
            self.exit_code = EXIT_FAILED
        else:
            self._written[imported.source] += 1

    def report(self, problem: object) -> None:
        """Report a part of the input that was not understood."""
        self.say(str(problem))
        self.exit_code = EXIT_FAILED

    def say_counts(self, left_out: "LeftOut") -> None:
        """Write the numbers of objects, imported and left out."""
        counts = [f"{count} {source}s" for source, count in self._written.items()]
        self.say(f"{' and '.join(counts)} imported; left out: {left_out}")

    def say(self, line: str) -> None:
        """Write a remark."""
        typer.echo(f"kontroller import: {line}", err=True)


def _name_file(file: IO[bytes]) -> str:
    name = getattr(file, "name", "-")  # a test's standard input has none
    return "standard input" if name in ("-", "<stdin>") else str(name)


def _import_files(files: Sequence[tuple[str, bytes]], given: "Given", out: _Output) -> None:
    from kontroller.importing.declared import import_declared
    from kontroller.importing.declared_plans import import_plans
    from kontroller.importing.sources.reading import read_files

    reading = read_files(files)
    for problem in reading.problems:
        out.report(problem)
    for remark in reading.remarks:
        out.say(remark)
    for each in import_declared(reading.topics, given, reading.left_out):
        out.write(each)
    for each in import_plans(reading.plans, given, reading.left_out):
        out.write(each)
    out.say_counts(reading.left_out)


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
    from kontroller.importing.documents import LeftOut
    from kontroller.importing.object_names import ObjectNames

    for note in known.notes if known else ():
        out.say(note)
    left_out = LeftOut()
    settings = OperatorSettings(all_namespaces=True)
    if properties:
        settings = settings.model_copy(update={"properties": tuple(properties)})
    chosen = replace(choice, managed=known.managed) if known else choice
    names = ObjectNames(known.taken if known else ())
    async with aclosing(_import_topics(address, settings, chosen, target, names, left_out)) as found:
        async for each in found:
            out.write(each)
    out.say_counts(left_out)


async def _import_topics(
    address: "ClusterAddress",
    settings: "OperatorSettings",
    choice: "Choice",
    target: "Target",
    names: "ObjectNames",
    left_out: "LeftOut",
) -> "AsyncGenerator[Imported, None]":
    from controller_operator.clusters.opening import make_poller
    from controller_operator.connecting import make_zookeeper_connector
    from controller_operator.kafka.cluster_files import ClusterFiles
    from controller_operator.resources.cluster_address import AtZooKeeper
    from kontroller.importing.live_topics import import_seen_topics, import_topics

    files = ClusterFiles(settings.properties)
    if isinstance(address, AtZooKeeper):
        files.security_of(address.connect)  # an unusable file is a wrong command, not a failure
        session = await make_zookeeper_connector(settings, files)(address.connect)
        try:
            async for each in import_topics(session, choice, target, names, left_out):
                yield each
        finally:
            await session.close()
        return
    listener = files.listener_of(address)
    if listener.security is not None:
        listener.security()
    poller = make_poller(address, files.listener_of)
    poller.start()
    try:
        view = await poller.refresh()
    finally:
        await poller.stop()
    for each in import_seen_topics(view, choice, target, names, left_out):
        yield each
