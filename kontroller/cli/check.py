"""`kontroller check`: checks that an installation works, for people and for `helm test`."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from kontroller.cli.endings import failure, run_and_exit
from kontroller.cli.option_groups import add_command
from kontroller.cli.options import DeadlineSeconds, Servers

commands = typer.Typer(help="Checks of an installation.", no_args_is_help=True)

_NAMESPACE_OF_POD: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_LONGEST_ASK_MS: Final = 5_000


@add_command(commands, "cluster")
def check_cluster(servers: Servers, deadline_seconds: DeadlineSeconds = 60) -> None:
    """Waits until a Kafka cluster has a controller that answers and on which all members agree, and prints its id.

    Also prints settings that differ between brokers, or between brokers and the controller.

    Exits with 0 on success, 1 if the deadline passes (and prints what is wrong), 2 if the command is wrong."""
    from kontroller.checks.cluster import look_at_cluster

    client = servers.make_client(min(_LONGEST_ASK_MS, deadline_seconds * 1000 // 3))
    run_and_exit(_wait(lambda: look_at_cluster(client), deadline_seconds))


@add_command(commands, "empty-brokers")
def check_empty_brokers(
    servers: Servers,
    broker: Annotated[
        list[int],
        typer.Option("--broker", help="Id of a broker to shut down for good. May be repeated.", min=0),
    ],
    deadline_seconds: DeadlineSeconds = 60,
) -> None:
    """Checks that brokers hold no replicas, so that they can be shut down for good. The brokers may be down already.

    Exits with 0 if they hold none, 1 if they hold some or no server answers in time, 2 if the command is wrong."""
    from controller_core.model.ids import BrokerId
    from kontroller.checks.empty_brokers import ReplicasLeft, look_for_replicas

    client = servers.make_client(min(_LONGEST_ASK_MS, deadline_seconds * 1000 // 3))
    brokers = [BrokerId(each) for each in broker]

    async def run() -> int:
        try:
            return await _wait(lambda: look_for_replicas(client, brokers), deadline_seconds)
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
    deadline_seconds: DeadlineSeconds = 60,
) -> None:
    """Waits until the API server serves all kinds of kontroller.dev, accepts a valid KafkaTopic and refuses an invalid
    one.

    Creates nothing. Uses the API server of the pod, or of KUBECONFIG. Exits with 0 on success, 1 if the deadline passes
    (and prints what is wrong), 2 if the command is wrong."""
    from controller_operator.kubernetes.api_server import NoKubernetes, kubernetes_objects
    from kontroller.checks.api import look_at_api

    async def run() -> int:
        try:
            async with kubernetes_objects() as objects:
                return await _wait(lambda: look_at_api(objects, namespace or _read_own_namespace()), deadline_seconds)
        except NoKubernetes as error:
            return failure(error).exit_code

    run_and_exit(run())


async def _wait(look: Callable[[], Awaitable[str]], deadline_seconds: int) -> int:
    from kontroller.checks.waiting import NotWell, wait_until_well

    try:
        typer.echo(await wait_until_well(look, deadline_seconds))
    except NotWell as error:
        return failure(error).exit_code
    return 0


def _read_own_namespace() -> str:
    try:
        return _NAMESPACE_OF_POD.read_text().strip()
    except OSError:
        return "default"
