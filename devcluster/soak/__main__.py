"""The soak: `make soak MINUTES=30 SEED=n`. It exits with 1 if anything is wrong, and then keeps the logs."""

import itertools
import random
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Final

import typer
from kazoo.exceptions import KazooException
from rich.markup import escape

from devcluster.building.java import KAFKA_VERSION, OLDER_VERSIONS
from devcluster.building.toolchain import BuildError, MissingToolError
from devcluster.clients.load import LoadReport, ReadBackError, find_lost, read_back
from devcluster.demo.stage import Stage
from devcluster.filling.fill import fill_cache
from devcluster.filling.parts import Part
from devcluster.running.processes import ConditionTimeoutError, StartError, exit_on_sigterm, wait_until
from devcluster.soak.checks import problems
from devcluster.soak.cluster import Soak, run_soak
from devcluster.soak.journal import journal_problems
from devcluster.soak.schedule import Step, schedule
from devcluster.soak.tally import read_controller_logs

_REST_DEADLINE_S: Final = 150.0
_READ_DEADLINE_S: Final = 300.0
_MOST_SHOWN: Final = 40


def main(
    minutes: Annotated[float, typer.Option(min=0.1, help="Minutes during which operations happen.")] = 30.0,
    seed: Annotated[int | None, typer.Option(help="Seed of the schedule. Default: a random one.")] = None,
    kafka: Annotated[str, typer.Option(help="Version of Kafka that the brokers run.")] = KAFKA_VERSION,
    show: Annotated[bool, typer.Option("--show", help="Show the seed's schedule and exit.")] = False,
) -> None:
    """Perform operations on a real cluster while producers run, heal it, and check that nothing is wrong or lost."""
    chosen = random.randrange(1_000_000) if seed is None else seed  # noqa: S311 - names a test run, guards no secret
    if show:
        for step in _steps(chosen, minutes):
            typer.echo(step)
        return
    if kafka not in (known := (KAFKA_VERSION, *OLDER_VERSIONS)):
        raise typer.BadParameter(f"Kafka {kafka} is not here; there are {', '.join(known)}", param_hint="--kafka")
    fill_cache([Part.KAFKA])
    stage = Stage()
    again = f"To see the same happen again: make soak MINUTES={minutes:g} SEED={chosen} KAFKA={kafka}"
    stage.say(again)
    with exit_on_sigterm(), run_soak(stage, kafka) as soak:
        _happen(soak, chosen, minutes)
        summary = _finish(soak)
        if stage.failures:
            soak.folder.keep_logs()
            summary += [f"Logs: {soak.folder.path / 'logs'}", again]
        code = stage.close(summary)
    raise typer.Exit(code)


def _steps(seed: int, minutes: float) -> Iterator[Step]:
    return itertools.takewhile(lambda step: step.at_s < minutes * 60, schedule(seed))


def _happen(soak: Soak, seed: int, minutes: float) -> None:
    soak.stage.step(
        "Things happen", f"For {minutes:g} minutes, as seed {seed} has it, while producers with acks=all run."
    )
    began_s = time.monotonic()
    for step in _steps(seed, minutes):
        time.sleep(max(0.0, began_s + step.at_s - time.monotonic()))
        soak.perform(step.operation)


def _finish(soak: Soak) -> list[str]:
    """Heal and check; returns the lines of the summary."""
    stage = soak.stage
    stage.step("Healing", "Every server runs again, and nothing more happens.")
    soak.heal()
    reports = {topic: producer.stop() for topic, producer in soak.producers.items()}
    stage.step("The checks", "ZooKeeper, every broker's metadata and disk, every acknowledged message, the logs.")
    _expect_soundness(soak)
    summary = [_read_back(soak, topic, report) for topic, report in reports.items()]
    record = read_controller_logs(soak.controller_logs())
    _expect_none(stage, record.unexpected, "the controllers met nothing that they did not understand")
    _expect_none(stage, soak.deaths(), "no server ended by itself")
    terms = soak.znodes.read("/controller_epoch")
    _expect_true_journals(soak)
    stage.console.print()
    stage.console.print(soak.tally.table())
    return [
        *summary,
        f"{record.elections} times another leader was elected; {terms} terms of controllers, {record.terms} of them ours.",
    ]


def _expect_soundness(soak: Soak) -> None:
    wrong: list[str] = []

    def is_sound() -> bool:
        try:
            wrong[:] = problems(soak.snapshot(), soak.make_expected())
        except KazooException as error:
            wrong[:] = [f"ZooKeeper says {error!r}"]
        return not wrong

    with suppress(ConditionTimeoutError):
        wait_until(is_sound, "the cluster is as it should be", silence_s=_REST_DEADLINE_S, longest_s=_REST_DEADLINE_S)
    for broker, view in soak.snapshot().brokers.items():
        for name in sorted(view.abandoned if view else ()):
            soak.stage.say(f"[yellow]broker {broker} made the directory {name} and gave it up, as Kafka does[/]")
    for name in sorted(soak.find_left_by_kafka()):
        soak.stage.say(f"[yellow]Kafka's own controller reassigned {name} and had no former replica of it deleted[/]")
    _expect_none(soak.stage, wrong, "all is as it should be in ZooKeeper, in the brokers' metadata and on their disks")


def _expect_true_journals(soak: Soak) -> None:
    at_rest = soak.snapshot()
    soak.stop_controllers()
    wrong = journal_problems(soak.journals(), at_rest)
    _expect_none(soak.stage, wrong, "the controllers' journals are without a gap and come to what ZooKeeper says")


def _read_back(soak: Soak, topic: str, report: LoadReport) -> str:
    """Expect every acknowledged message of a topic; returns the topic's line of the summary."""
    try:
        values = read_back(soak.kafka.bootstrap_servers, topic, deadline_s=_READ_DEADLINE_S)
    except ReadBackError as error:
        soak.stage.expect(False, str(error))
        return f"{topic}: {len(report.acknowledged)} messages acknowledged, not read back."
    missing = find_lost(report.acknowledged, values)
    examples = f", such as {missing[:3]}" if missing else ""
    soak.stage.expect(bool(report.acknowledged), f"{topic}: {len(report.acknowledged)} messages were acknowledged")
    soak.stage.expect(not missing, f"{topic}: {len(missing)} of them are lost{examples}")
    reasons = f" ({', '.join(sorted(set(map(_shorten, report.errors))))})" if report.errors else ""
    return (
        f"{topic}: {len(report.acknowledged)} messages acknowledged, {len(values)} read back, {len(missing)} lost, "
        f"{len(report.errors)} sends failed{escape(reasons)}, "
        f"at most {report.longest_pause_s:.0f} s without an acknowledgement, {len(report.stuck)} clients stuck."
    )


def _shorten(error: str) -> str:
    """Return the code of a producer's error, without the words about one message."""
    found = re.search(r"code=(\w+)", error)
    return found.group(1) if found else error[:60]


def _expect_none(stage: Stage, wrong: Sequence[str], what: str) -> None:
    for problem in wrong[:_MOST_SHOWN]:
        stage.expect(False, problem)
    if len(wrong) > _MOST_SHOWN:
        stage.expect(False, f"and {len(wrong) - _MOST_SHOWN} more like these")
    if not wrong:
        stage.expect(True, what)


if __name__ == "__main__":
    try:
        typer.run(main)
    except (BuildError, MissingToolError, StartError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
