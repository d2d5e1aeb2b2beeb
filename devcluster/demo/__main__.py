"""The demo: six unmodified brokers and our controller, then our operator and kubectl, with producers that never stop.

`--kraft` (`make demo KRAFT=1`) uses brokers without ZooKeeper, with our operator and kubectl alone. Kafka is fetched
first. If the Kubernetes API server must be built, it is built in parallel to the first part. `make demo` exits with 1
if anything went wrong. With KEEP=1 everything runs on until Ctrl-C.
"""

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from devcluster.building.go import compilers
from devcluster.building.toolchain import BuildError, MissingToolError, require
from devcluster.clients.load import AckedProducer, find_lost, read_back
from devcluster.clients.tools import TOPICS, run_tool
from devcluster.clusters.run_folder import RunFolder, is_data_kept, run_folder
from devcluster.demo.cluster import Cluster, run_cluster
from devcluster.demo.operated import Operated, Starting, kubernetes_beside, run_operator
from devcluster.demo.stage import Stage
from devcluster.demo.with_resources import second_part
from devcluster.demo.with_tools import first_part
from devcluster.demo.without_zookeeper import FOLDER, TOPIC, only_part, run_brokers
from devcluster.filling.parts import API_SERVER, Part, fill, find_missing
from devcluster.running.processes import ConditionTimeoutError, StartError, exit_on_sigterm

_BUILD_CORE_MINUTES = 9
"""The time to build the API server from nothing, on one core."""


def main() -> int:
    """Run the requested demo; returns the exit code."""
    arguments = argparse.ArgumentParser(
        prog="make demo", description=("Run a whole cluster on this machine and operate it.")
    )
    arguments.add_argument("--kraft", action="store_true", help="use Kafka 4, without ZooKeeper")
    return show_without_zookeeper() if arguments.parse_args().kraft else show_with_zookeeper()


def show_with_zookeeper() -> int:
    """Show our controller and our operator."""
    stage = Stage()
    with ExitStack() as stack:
        stack.enter_context(exit_on_sigterm())
        announce(stage)
        folder = stack.enter_context(run_folder("demo"))
        kubernetes = stack.enter_context(kubernetes_beside(stage, folder))
        _require_for(Part.KAFKA)
        fill(Part.KAFKA)
        cluster = stack.enter_context(run_cluster(stage, folder))
        first_part(cluster)
        operated = go_on_with_resources(stage, cluster, kubernetes, stack)
        counts = [
            line
            for topic, producer in cluster.producers.items()
            for line in count_messages(stage, cluster.kafka.bootstrap_servers, topic, producer)
        ]
        stage.expect(
            "unexpected error" not in cluster.controller_log(), "the controller met nothing that it did not understand"
        )
        code = stage.close(counts)
        if is_data_kept():
            _stay(
                stage, folder, operated, f"ZooKeeper {cluster.kafka.zookeeper_connect}", cluster.kafka.bootstrap_servers
            )
        return code


def show_without_zookeeper() -> int:
    """Show our operator, on a cluster with Kafka's own controllers."""
    stage = Stage()
    with ExitStack() as stack:
        stack.enter_context(exit_on_sigterm())
        stage.say(
            "Real brokers of Kafka 4, a real Kubernetes API server and our operator, asked by kubectl: two minutes."
        )
        _announce_builds(stage)
        folder = stack.enter_context(run_folder("demo"))
        starting = stack.enter_context(kubernetes_beside(stage, folder))
        _require_for(Part.KRAFT)
        fill(Part.KRAFT)
        brokers = stack.enter_context(run_brokers(stage, folder))
        servers = brokers.kafka.bootstrap_servers
        try:
            kubernetes = starting.wait()
        except BuildError as error:
            stage.expect(False, "the API server was built")
            stage.show("make build", str(error))
            return stage.close([])
        address = {"bootstrapServers": servers}
        example = f"{FOLDER}/cluster.yaml"
        operated = stack.enter_context(run_operator(stage, folder, kubernetes, address, example=example))
        producer = only_part(operated, brokers)
        code = stage.close(count_messages(stage, servers, TOPIC, producer))
        if is_data_kept():
            _stay(stage, folder, operated, "no ZooKeeper", servers)
        return code


def _require_for(part: Part) -> None:
    """Raise `MissingToolError` if a program is missing."""
    for program in ("java", "mvn") if find_missing([part]) else ("java",):
        require(program)


def announce(stage: Stage) -> None:
    """Say what the demo does, and how long it takes."""
    stage.say("[bold]First[/]  real brokers under our controller, asked by Kafka's own tools: half a minute.")
    stage.say("[bold]Then[/]   a real Kubernetes API server and our operator, asked by kubectl: a minute and a half.")
    if find_missing([Part.KAFKA]):
        stage.say("Kafka is not in the cache yet: it is fetched first, which takes a minute.")
    _announce_builds(stage)


def _announce_builds(stage: Stage) -> None:
    if Part.KUBERNETES in find_missing(API_SERVER):
        cores = compilers()
        stage.say(
            "The Kubernetes API server is not in the cache yet. It is built beside the first part, which takes some "
            f"{round(_BUILD_CORE_MINUTES / cores) or 1} minutes on {cores} cores. Next time it is there."
        )


def go_on_with_resources(stage: Stage, cluster: Cluster, starting: Starting, stack: ExitStack) -> Operated | None:
    """Run the second part if the API server can be built; otherwise the demo has failed, and only the count follows."""
    if not starting.cluster.done():
        stage.say("The API server is not there yet: what follows waits for it, and the producer goes on.")
    try:
        kubernetes = starting.wait()
    except BuildError as error:
        stage.expect(False, "the API server was built")
        stage.show("make build", str(error))
        return None
    kafka = cluster.kafka
    address = {"zookeeper": {"connect": kafka.zookeeper_connect}, "bootstrapServers": kafka.bootstrap_servers}
    operated = stack.enter_context(run_operator(stage, cluster.folder, kubernetes, address, example="cluster.yaml"))
    second_part(operated, cluster)
    return operated


def count_messages(stage: Stage, brokers: str, topic: str, producer: AckedProducer) -> list[str]:
    """Read a topic back; returns the lines of the summary."""
    stage.step(f"The count of {topic}", "Every message that was ever acknowledged is read back.")
    report = producer.stop()
    missing_values = find_lost(report.acknowledged, read_back(brokers, topic))
    described = run_tool(TOPICS, "--bootstrap-server", brokers, "--describe", "--topic", topic)
    stage.show(f"kafka-topics.sh --describe --topic {topic}", described.stdout)
    stage.expect(described.returncode == 0, "Kafka's own tool describes the topic")
    stage.expect(len(report.acknowledged) > 0, f"{len(report.acknowledged)} messages were acknowledged")
    stage.expect(not missing_values, f"{len(missing_values)} of them are lost")
    stage.expect(not report.errors, f"{len(report.errors)} sends failed")
    return [
        f"{topic}: {len(report.acknowledged)} messages acknowledged, {len(missing_values)} lost, "
        f"{len(report.errors)} sends failed.",
        f"  The longest time without an acknowledgement was {report.longest_pause_s:.1f} s (a session has to end first).",
        *(f"  librdkafka's client was stuck: {each}, and a new one got through at once." for each in report.stuck),
    ]


@contextmanager
def _ignore_interrupt() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        print()


def _stay(stage: Stage, folder: RunFolder, operated: Operated | None, zookeeper: str, brokers: str) -> None:
    console = stage.console
    console.print("\n[bold]It all runs on until Ctrl-C.[/] In another terminal:\n")
    if operated:
        console.print(f"  export KUBECONFIG={operated.kubernetes.kubeconfig}")
        console.print(f"  alias kubectl={operated.kubectl_path}")
        console.print("  kubectl --namespace kafka get kontroller")
        console.print("  kubectl --namespace kafka explain kpr.spec")
    console.print(f"\n  brokers {brokers}\n  {zookeeper}")
    console.print(f"  logs {folder.path / 'logs'}")
    with _ignore_interrupt():
        signal.pause()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BuildError, ConditionTimeoutError, MissingToolError, StartError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
