"""Minutes of faults for the operator's watch: restarts and silences of the API server, outdated versions, and lost
definitions.

Objects are created, changed and deleted in between. `KONTROLLER_SOAK_MINUTES=30 KONTROLLER_SOAK_SEED=7` sets the
duration and the seed.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from urllib.error import URLError

import pytest

from devcluster.clusters.kubernetes import KubernetesApi, KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.processes import wait_until
from tests.real.operator.operated import Objects, Operator, operate_namespace
from tests.real.operator.watching.watched import (
    NOWHERE,
    a_topic,
    remove_definition,
    restore_definition,
    run_watching_operator,
)

MINUTES = float(os.environ.get("KONTROLLER_SOAK_MINUTES", "3"))
SEED = int(os.environ.get("KONTROLLER_SOAK_SEED", "1"))
MOST_BYTES = 300 << 20
"""The limit of the operator's resident memory."""
pytestmark = [
    pytest.mark.real,
    pytest.mark.nightly("it lasts minutes"),
    pytest.mark.timeout(600 + 120 * MINUTES),
]


class Course:
    """The operations of the soak, chosen by a seed."""

    def __init__(self, api: KubernetesApi, objects: Objects, operator: Operator, seed: int) -> None:
        self._api = api
        self._objects = objects
        self._operator = operator
        self._random = random.Random(seed)
        self._numbers = count(1)
        self.happened: Counter[str] = Counter()

    def step(self) -> None:
        users = [self._make] * 6 + [self._change] * 4 + [self._delete] * 3
        faults = [self._restart_server, self._silence_server, self._be_away, self._lose_definition, self._restart]
        happens = self._random.choice([*users, *faults])
        happens()
        self.happened[happens.__name__.strip("_")] += 1
        self._revive()

    def settle(self) -> None:
        """Wait until the operator knows exactly the existing objects, and has a condition about each present
        generation.
        """
        wait_until(self._is_settled, f"all is known after {dict(self.happened)}")

    def _is_settled(self) -> bool:
        self._revive()
        try:
            is_in_trouble = self._operator.trouble() is not None
        except URLError:  # it has just exited
            return False
        if is_in_trouble:
            return False
        topics = self._objects.every("kafkatopics")
        return self._operator.count("KafkaTopic") == len(topics) and all(
            any(
                each["observedGeneration"] == topic["metadata"]["generation"]
                for each in topic.get("status", {}).get("conditions", [])
            )
            for topic in topics
        )

    def _revive(self) -> None:
        """Start a process that exited, as Kubernetes does.

        Two causes are allowed: definitions that are deleted or created, and an API server that has just started and
        refuses a right, because it has not read the roles yet.
        """
        if not self._operator.process.is_running:
            assert self._operator.process.exit_code == 1
            reasons = ("a new process must begin them", "is served now", "403 Forbidden")
            assert any(reason in self._operator.log() for reason in reasons)
            self.happened["ended by itself"] += 1
            self._operator.start()

    def _names(self) -> list[str]:
        return sorted(each["metadata"]["name"] for each in self._objects.every("kafkatopics"))

    def _make(self) -> None:
        for _ in range(self._random.choice([1, 1, 20])):
            a_topic(self._objects, f"topic-{next(self._numbers)}")

    def _change(self) -> None:
        if names := self._names():
            spec = {"spec": {"config": {"retention.ms": str(self._random.randrange(1, 10**9))}}}
            self._objects.patch("kafkatopic", self._random.choice(names), spec)

    def _delete(self) -> None:
        names = self._names()
        for name in self._random.sample(names, k=min(len(names), self._random.choice([1, 5]))):
            self._objects.delete("kafkatopic", name)
            if self._objects.get("kafkatopic", name) is not None:
                self._objects.patch("kafkatopic", name, {"metadata": {"finalizers": None}})

    def _restart_server(self) -> None:
        self._api.restart()

    def _silence_server(self) -> None:
        self._api.process.send_signal(signal.SIGSTOP)
        time.sleep(self._random.choice([1, 20]))
        self._api.process.send_signal(signal.SIGCONT)

    def _be_away(self) -> None:
        """Stop the operator until the changes it missed are too old to watch: a restarted API server answers 410."""
        self._operator.process.send_signal(signal.SIGSTOP)
        try:
            self._make()
            self._delete()
            self._api.restart()
        finally:
            self._operator.process.send_signal(signal.SIGCONT)

    def _lose_definition(self) -> None:
        remove_definition(self._api)
        try:
            self._make()
        finally:
            restore_definition(self._api)

    def _restart(self) -> None:
        self._operator.process.kill()
        self._operator.start()


@pytest.fixture
def objects(kubernetes_api: KubernetesCluster) -> Iterator[Objects]:
    with operate_namespace(kubernetes_api, NOWHERE) as found:
        yield found


def test_whatever_happens_it_knows_what_there_is(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, objects: Objects
) -> None:
    if not isinstance(kubernetes_api, KubernetesApi):
        pytest.skip("it needs an API server of its own")
    until_s = time.monotonic() + 60 * MINUTES
    with run_watching_operator(servers_folder, kubernetes_api) as operator:
        course = Course(kubernetes_api, objects, operator, SEED)
        while time.monotonic() < until_s:
            for _ in range(10):
                course.step()
            course.settle()
            assert operator.resident_bytes() < MOST_BYTES
        assert "kopf" not in str(objects.every("kafkatopics"))
        print(dict(course.happened), operator.resident_bytes() >> 20, "MB")  # noqa: T201
