"""`kontroller ready`: the readiness probe of a broker's pod. It runs every few seconds, so it imports as little as it
can."""

from typing import Annotated

import typer

from kontroller.cli.endings import EXIT_FAILED, run_and_exit
from kontroller.cli.options import BrokerIdOption, Servers, TimeoutMs


def ready(
    servers: Servers,
    broker_id: BrokerIdOption,
    timeout_ms: TimeoutMs = 5_000,
    address_cache_seconds: Annotated[
        int,
        typer.Option(
            help="Seconds after the start of its container in which a broker that has replicas is not ready, because "
            "clients may have the address of its former pod: Java caches it for 30 s, and the cluster's DNS adds its own "
            "time.",
            envvar="KONTROLLER_ADDRESS_CACHE_SECONDS",
            min=0,
            max=3_600,
        ),
    ] = 40,
) -> None:
    """Checks that a broker is registered, answers, knows a controller, has all its replicas in sync, and can be found
    by clients.

    Ignores replicas that a reassignment is adding to it, and replicas of partitions without a leader. Exits with 0 if
    the broker is ready, 1 if it is not (and prints why), 2 if the command is wrong. Ask the broker itself:
    --bootstrap-server is its own address, at the listener that brokers use among themselves."""
    from controller_core.model.ids import BrokerId
    from kontroller.brokers.readiness import look_at_broker, measure_age_s

    client = servers.make_client(timeout_ms)

    async def run() -> int:
        hidden_s = address_cache_seconds - measure_age_s()
        why = await look_at_broker(client, BrokerId(broker_id), timeout_ms / 1000, hidden_s)
        typer.echo(f"broker {broker_id} is {'ready' if why is None else f'not ready: {why}'}")
        return 0 if why is None else EXIT_FAILED

    run_and_exit(run())
