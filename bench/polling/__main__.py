"""The cost of polling many topics without ZooKeeper, and the delay until changes made elsewhere are seen.

    python -m bench.polling --topics 1000 --partitions 3

Three brokers and three controllers of Kafka on this machine are warmed up. Their use is measured without the operator's
poller, before and after, and with it, while nothing changes. Another client makes changes of each kind, each timed from
its answer to the view that shows it. The poller's cost is below the variation of the brokers' own use. So finally they
are polled without a pause, and the use per second of waiting is scaled to the poller's waiting. The goals are for an
idle machine. The result is printed in the format of docs/performance.md, and saved in bench/results/polling.json.
"""

import asyncio
import os
import statistics
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from bench.polling.changes import Seen, play
from bench.polling.watched import WITHOUT_A_PAUSE, Used, create_topics, used_by, warm_up, watch
from bench.setup.jvm import IN_EARNEST
from bench.setup.results_file import ResultsFile
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.run_folder import run_folder
from devcluster.filling.fill import fill_cache
from devcluster.filling.parts import Part
from devcluster.running.processes import exit_on_sigterm

RESULTS: Final = Path(__file__).parents[1] / "results" / "polling.json"
_SHARE_GOAL: Final = 0.01
_SEEN_GOAL_S: Final = 2.0
console = Console(highlight=False)


def main(
    topics: Annotated[int, typer.Option(help="Number of topics.", min=100)] = 1_000,
    partitions: Annotated[int, typer.Option(help="Partitions of each topic.", min=1)] = 3,
    seconds: Annotated[float, typer.Option(help="Duration of each measurement of use, in seconds.", min=1)] = 40,
    warm: Annotated[float, typer.Option(help="Duration of the brokers' warm-up, in seconds.", min=0)] = 30,
    times: Annotated[int, typer.Option(help="Number of changes of each kind.", min=1)] = 6,
    output: Annotated[Path, typer.Option(help="File for the results.")] = RESULTS,
) -> None:
    """Measure, print and save the cost of the topics for the brokers and the operator."""
    settings = {"topics": topics, "partitions": partitions, "seconds": seconds, "load_before": os.getloadavg()[0]}
    fill_cache({Part.KRAFT})
    os.environ.update(IN_EARNEST)
    results = ResultsFile(output, settings, "used", "seen")
    with exit_on_sigterm(), run_folder("bench-polling") as folder, KRaftCluster(folder) as cluster:
        asyncio.run(_measure(cluster, results, topics, partitions, seconds, warm, times))
    results.content["load_after"] = os.getloadavg()[0]
    results.keep()
    console.print("\n".join(table(results.content)), soft_wrap=True)


async def _measure(
    cluster: KRaftCluster, results: ResultsFile, topics: int, partitions: int, seconds: float, warm: float, times: int
) -> None:
    await create_topics(cluster, topics, partitions)
    await warm_up(cluster, warm)
    results.add("used", await _alone(cluster, seconds / 2))
    async with watch(cluster) as found:
        results.add("used", asdict(await found.use(seconds)))
        async for seen in play(cluster, found, times):
            results.add("seen", seen._asdict())
    results.add("used", await _alone(cluster, seconds / 2))
    async with watch(cluster, WITHOUT_A_PAUSE) as found:
        results.add("used", asdict(await found.use(seconds / 2)))


async def _alone(cluster: KRaftCluster, seconds: float) -> dict[str, Any]:
    """Measure the brokers' use without the poller."""
    before = used_by(cluster)
    await asyncio.sleep(seconds)
    spent = [(after - was) / seconds for was, after in zip(before, used_by(cluster), strict=True)]
    return asdict(Used(brokers=sorted(spent, reverse=True), poller=0.0, answers=0.0, waited=0.0))


def table(content: dict[str, Any]) -> Iterator[str]:
    """Yield the rows of docs/performance.md."""
    before, polled, after, asked = (Used(**each) for each in content["used"])
    cost = polled.waited * (sum(asked.brokers) - sum(after.brokers)) / asked.waited
    load = f"{content['settings']['load_before']:.1f} to {content['load_after']:.1f}"
    yield f"A load of {load}, {content['machine']['cores']} cores."
    yield ""
    yield "| | goal | measured |"
    yield "| --- | ---: | ---: |"
    yield f"| processor time of brokers for it | < {_SHARE_GOAL:.0%} of a core | {cost:.2%} |"
    yield (
        "| of brokers, together: before, with it, after, asked without a pause | | "
        f"{', '.join(f'{sum(each.brokers):.1%}' for each in (before, polled, after, asked))} |"
    )
    yield f"| of the poller | | {polled.poller:.2%} |"
    yield f"| answers, and how long they were waited for | | {polled.answers:.1f} a second, {polled.waited:.2%} of it |"
    yield f"| the same without a pause | | {asked.answers:.1f} a second, {asked.waited:.2%} of it |"
    for each in content["seen"]:
        seen = Seen(**each)
        median, worst = statistics.median(seen.seconds), max(seen.seconds)
        yield f"| {seen.what}, seen after: median, worst | {_SEEN_GOAL_S:.0f} s | {median:.2f} s, {worst:.2f} s |"


if __name__ == "__main__":
    typer.run(main)
