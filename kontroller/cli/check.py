"""`kontroller check`: checks that an installation works, for people and for `helm test`."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from kontroller.cli.endings import EXIT_FAILED, failure, run_and_exit, usage_error
from kontroller.cli.option_groups import add_command
from kontroller.cli.options import Servers, TimeoutMs, divide_time

commands = typer.Typer(help="Check an installation: api, cluster, empty-brokers, rules.", no_args_is_help=True)

_NAMESPACE_OF_POD: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_LONGEST_ASK_MS: Final = 5_000


@add_command(commands, "cluster")
def check_cluster(servers: Servers, timeout_ms: TimeoutMs = 60_000) -> None:
    """Waits until a Kafka cluster has a controller that answers and on which all members agree, and prints its id.

    Also prints settings that differ between brokers, or between brokers and the controller.

    Exits with 0 on success, 1 if the time is over (and prints what is wrong), 2 if the command is wrong."""
    from kontroller.checks.cluster import look_at_cluster

    client = servers.make_client(divide_time(timeout_ms, _LONGEST_ASK_MS))
    run_and_exit(_wait(lambda: look_at_cluster(client), timeout_ms))


@add_command(commands, "empty-brokers")
def check_empty_brokers(
    servers: Servers,
    broker: Annotated[
        list[int],
        typer.Option("--broker", help="Id of a broker to shut down for good. May be repeated.", min=0),
    ],
    timeout_ms: TimeoutMs = 60_000,
) -> None:
    """Checks that brokers hold no replicas, so that they can be shut down for good. The brokers may be down already.

    Exits with 0 if they hold none, 1 if they hold some or no server answers in time, 2 if the command is wrong."""
    from controller_core.model.ids import BrokerId
    from kontroller.checks.empty_brokers import ReplicasLeft, look_for_replicas

    client = servers.make_client(divide_time(timeout_ms, _LONGEST_ASK_MS))
    brokers = [BrokerId(each) for each in broker]

    async def run() -> int:
        try:
            return await _wait(lambda: look_for_replicas(client, brokers), timeout_ms)
        except ReplicasLeft as error:
            return failure(error).exit_code

    run_and_exit(run())


@commands.command("api")
def check_api(
    namespace: Annotated[
        str | None,
        typer.Option(
            help="Namespace in which objects are tried, without creating any. Default: the pod's own namespace.",
            envvar="KONTROLLER_NAMESPACE",
        ),
    ] = None,
    timeout_ms: TimeoutMs = 60_000,
) -> None:
    """Waits until the API server serves all kinds of kontroller.dev, accepts a valid KafkaTopic and refuses an invalid
    one.

    Creates nothing. Uses the API server of the pod, or of KUBECONFIG. Exits with 0 on success, 1 if the time is over
    (and prints what is wrong), 2 if the command is wrong."""
    from controller_operator.kubernetes.api_server import NoKubernetes, kubernetes_objects
    from kontroller.checks.api import look_at_api

    async def run() -> int:
        try:
            async with kubernetes_objects() as objects:
                return await _wait(lambda: look_at_api(objects, namespace or _read_own_namespace()), timeout_ms)
        except NoKubernetes as error:
            return failure(error).exit_code

    run_and_exit(run())


@commands.command("rules")
def check_rules(
    file: Annotated[Path, typer.Argument(help="File with the rules.", show_default=False)],
    topic: Annotated[str, typer.Option(help="Name of the topic.")] = "topic",
    partitions: Annotated[int, typer.Option(help="Number of partitions.")] = 1,
    replication_factor: Annotated[int, typer.Option(help="Replicas of each partition.")] = 3,
    config: Annotated[list[str] | None, typer.Option(help="Configuration: NAME=VALUE. May be repeated.")] = None,
    principal: Annotated[str, typer.Option(help="Principal of the request.")] = "User:ANONYMOUS",
    namespace: Annotated[
        str | None, typer.Option(help="Namespace of a KafkaTopic, instead of a principal's request.")
    ] = None,
) -> None:
    """Checks the creation of a topic against rules for topics, without a cluster, and prints the rule that refuses it.

    Exits with 0 if the rules allow it, 1 if they do not, 2 if the command or a rule is wrong."""
    from controller_core.rules.topic_rules import InvalidRules
    from kontroller.checks.topic_rules import try_rules
    from kontroller.cli.administering.connection import parse_key_values

    configs = parse_key_values(config, "--config")
    try:
        objection = try_rules(file, topic, partitions, replication_factor, configs, principal, namespace)
    except InvalidRules as error:
        raise usage_error(error) from error
    if objection is not None:
        typer.echo(f"refused: {objection}")
        raise typer.Exit(EXIT_FAILED)
    typer.echo("allowed")


async def _wait(look: Callable[[], Awaitable[str]], timeout_ms: int) -> int:
    from kontroller.checks.waiting import NotWell, wait_until_well

    try:
        typer.echo(await wait_until_well(look, timeout_ms / 1000))
    except NotWell as error:
        return failure(error).exit_code
    return 0


def _read_own_namespace() -> str:
    try:
        return _NAMESPACE_OF_POD.read_text().strip()
    except OSError:
        return "default"
