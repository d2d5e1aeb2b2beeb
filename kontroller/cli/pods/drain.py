"""`kontroller drain`: the preStop hook of a broker's pod."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from kontroller.cli.endings import EXIT_FAILED, run_and_exit
from kontroller.cli.options import BrokerIdOption, Servers, TimeoutMs, divide_time

_LONGEST_ASK_MS = 15_000


def drain(
    servers: Servers,
    broker_id: BrokerIdOption,
    timeout_ms: TimeoutMs = 120_000,
    replicas_timeout_ms: Annotated[
        int,
        typer.Option(
            help="Milliseconds without progress after which to stop waiting for other brokers' replicas to come into "
            "sync.",
            envvar="KONTROLLER_REPLICAS_TIMEOUT_MS",
            min=0,
        ),
    ] = 60_000,
    log_to: Annotated[
        Path | None,
        typer.Option(
            help="File to which the output is also written: /proc/1/fd/1 is the log of a pod.",
            envvar="KONTROLLER_LOG_TO",
        ),
    ] = None,
) -> None:
    """Prepares a broker for its stop: waits until its partitions have enough other replicas in sync, then moves its
    leaderships away.

    Exits with 0 if the broker may be stopped or is not registered, 1 if it could not be drained, 2 if the command is
    wrong. Works with Kontroller and with Kafka's own controller."""
    from controller_core.model.ids import BrokerId
    from kontroller.brokers.drain import Drain, NotDrained, NotRegistered

    ask_ms = divide_time(timeout_ms, _LONGEST_ASK_MS)
    client = servers.make_client(ask_ms, connect_timeout_ms=max(500, ask_ms // 3))

    def say(what: str, *, is_error: bool = False) -> None:
        line = f"kontroller drain: {what}"
        typer.echo(line, err=is_error)
        if log_to is not None:
            _append(log_to, line)

    async def run() -> int:
        say(f"draining broker {broker_id}, for {timeout_ms / 1000:g} s at most")
        try:
            await Drain(client, BrokerId(broker_id), patience_s=replicas_timeout_ms / 1000, say=say).run(
                timeout_ms / 1000
            )
        except NotDrained as error:
            say(str(error), is_error=True)
            return EXIT_FAILED
        except NotRegistered as error:
            say(f"{error}; there is nothing to drain")
            return 0
        say(f"broker {broker_id} is drained and may be stopped")
        return 0

    run_and_exit(run())


def _append(path: Path, line: str) -> None:
    """Append a line if that is possible without blocking: the log may be a pipe that nobody reads."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
        try:
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)
