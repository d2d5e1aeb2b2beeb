"""The kinds of stop, the gaps between acknowledgements, and their tables in docs/performance.md."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.broker_stops.gaps import find_longest_gap
from bench.broker_stops.report import Gap, Result, fill_document, make_gaps_table
from bench.broker_stops.stops import STOPS, Scene
from tests.e2e.toolbox import Acknowledgement

DOCS = Path(__file__).resolve().parents[3] / "docs"


def make_acknowledged(*seen: tuple[int, float]) -> list[Acknowledgement]:
    return [
        Acknowledgement(value=value, partition=partition, at_s=at_s) for value, (partition, at_s) in enumerate(seen)
    ]


@pytest.mark.parametrize(
    ("since", "longest"),
    [(0, 5.0), (3, 2.0), (4, 0.0)],
    ids=["of one partition", "that ends later", "nothing more"],
)
def test_the_longest_gap_is_that_of_a_single_partition(since: int, longest: float) -> None:
    seen = make_acknowledged((0, 1.0), (1, 2.0), (0, 6.0), (1, 4.0))
    assert find_longest_gap(seen, since=since) == longest


def test_each_kind_of_stop_has_all_its_runs_in_one_row() -> None:
    gaps = [
        Gap(stop="a stop", producer=producer, run=run, seconds=run / 10, errors=0, timeouts=run, load_before=1.0)
        for run in (1, 2)
        for producer in ("new", "old")
    ]
    assert make_gaps_table(Result(gaps=tuple(gaps))).splitlines()[-1] == "| a stop | 0.10 0.20 | 0.10 0.20 | 0 | 6 |"


def test_the_tables_of_the_document_are_those_of_its_result_file() -> None:
    document = (DOCS / "performance.md").read_text()
    result = Result.model_validate_json((DOCS / "performance-stops.json").read_text())
    assert document == fill_document(document, result)


class StandInRelease:
    """A release that records what is done to its pods. Each pod comes back, and another controller takes over."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self._lives: dict[str, int] = {}
        self._epoch = 1

    def kubectl(self, *arguments: str) -> str:
        command = " ".join(arguments)
        if command.startswith(("delete pod kontroller", "rollout restart")):
            self._stop(arguments[2], command)
        return ""

    def apply(self, killer: dict[str, Any]) -> None:
        (container,) = killer["spec"]["containers"]
        self._stop(container["command"][-1], f"SIGKILL {container['command'][-1]}")

    def get(self, _kind: str, name: str) -> Any:
        life = self._lives.get(name, 0)
        return {"metadata": {"uid": life}, "status": {"containerStatuses": [{"restartCount": life}]}}

    def status(self, _kind: str, _name: str) -> dict[str, Any]:
        return {"controller": {"id": 999}}

    def controller_epoch(self) -> int:
        return self._epoch

    def wait_healthy(self) -> None:
        self.done.append("healthy")

    def wait_for_preferred_leaders(self, topic: str) -> None:
        self.done.append(f"leaders of {topic}")

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        assert condition(), what

    def _stop(self, name: str, what: str) -> None:
        self.done.append(what)
        self._lives[name] = self._lives.get(name, 0) + 1
        self._epoch += "controller" in name


@pytest.mark.parametrize(
    ("kind", "done"),
    [
        (
            "all brokers restart, one by one",
            ["rollout restart statefulset/kontroller-kafka", "healthy", "leaders of gaps"],
        ),
        ("a broker's pod is deleted", ["delete pod kontroller-kafka-1", "healthy", "leaders of gaps"]),
        ("a broker's pod is deleted by force", ["delete pod kontroller-kafka-1 --grace-period=0 --force", "healthy"]),
        ("a broker is killed (SIGKILL)", ["SIGKILL kontroller-kafka-1", "healthy"]),
        ("the controller's pod is deleted", ["delete pod kontroller-controller-1", "healthy"]),
        ("the controller is killed (SIGKILL)", ["SIGKILL kontroller-controller-1", "healthy"]),
    ],
)
def test_a_kind_of_stop_does_what_its_name_says_and_waits_until_all_is_well(kind: str, done: list[str]) -> None:
    release = StandInRelease()
    pods, load = SimpleNamespace(images=""), SimpleNamespace(topic="gaps")
    STOPS[kind](cast(Scene, SimpleNamespace(release=release, pods=pods, load=load)))
    assert release.done == done


def test_every_kind_of_stop_has_a_row_of_the_table() -> None:
    gaps = [
        Gap(stop=kind, producer=producer, run=1, seconds=0.5, errors=0, timeouts=0, load_before=1.0)
        for kind in STOPS
        for producer in ("new", "old")
    ]
    rows = make_gaps_table(Result(gaps=tuple(gaps))).splitlines()[2:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == list(STOPS)
