"""Real servers for the tests that ask for them: started at the first use, one of each for the whole run.

A test that asks for a real server is marked `real` by that alone, so `-m "not real"` never starts one. The options that
select the cases of a level of checks are those of `tests/levels.py`.
"""

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import hypothesis
import pytest
import structlog
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from devcluster.building import progress
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.kubernetes import kubernetes_api as own_or_given_cluster
from devcluster.clusters.run_folder import RunFolder, run_folder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.filling.fill import fill_cache
from devcluster.filling.parts import API_SERVER, Part
from devcluster.node.pods import NoCluster
from devcluster.node.pods import prepare as prepare_pods
from devcluster.running.patience import LONGEST_WAIT_S
from devcluster.running.tokens import machine_tokens
from tests import levels
from tests.cpu_limit import CpuLimit
from tests.terminal import show_in_terminal

# Every run has the same examples; those of `make nightly` follow from the seed that it prints. No test asserts how long
# something takes: a busy machine would fail it.
hypothesis.settings.register_profile("derandomized", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.register_profile("nightly", derandomize=False, deadline=None, max_examples=500, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("KONTROLLER_HYPOTHESIS", "derandomized"))
# Hypothesis also tries constants of all modules of this project that happen to be loaded, so the examples of a test would
# depend on the tests before it. And it parses these modules in the first property test of each process, which may take
# longer than a test may. It has no setting for that.
providers._get_local_constants = Constants

# The default prints every local variable of every frame, which takes seconds where a cluster is among them.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)

# Fixtures that make a test a real one, and the parts of the cache that they need besides Kafka.
# `pytest.mark.real(Part.X)` names more.
_REAL_FIXTURES: dict[str, tuple[Part, ...]] = {
    "servers_folder": (),
    "kubernetes_api": (*API_SERVER, Part.HELM),
    "pods": (*API_SERVER, Part.HELM),
}
_KEPT_LOGS = pytest.StashKey[list[str]]()

_REAL_TIMEOUT_S = LONGEST_WAIT_S + 60
"""A wait for real servers ends on its own if nothing moves, and says what it waited for: pytest interrupts it later."""

_chroots = itertools.count(1)


@pytest.fixture(scope="session")
def servers_folder(request: pytest.FixtureRequest) -> Iterator[RunFolder]:
    """Data and logs of the servers that tests start; the logs stay when a test failed."""
    with run_folder("tests") as folder:
        yield folder
        if request.session.testsfailed:
            folder.keep_logs()
            request.config.stash[_KEPT_LOGS] = [str(folder.path / "logs")]


@pytest.fixture(scope="session")
def zookeeper(servers_folder: RunFolder) -> Iterator[ZooKeeper]:
    """A ZooKeeper that all tests share: work below `zookeeper_chroot`; a test that stops one starts its own."""
    with ZooKeeper(servers_folder) as server:
        yield server


@pytest.fixture
def zookeeper_chroot(zookeeper: ZooKeeper) -> str:
    """The (created) path of a tree that is this test's own, such as `/test-7`."""
    chroot = f"/test-{next(_chroots)}"
    with zookeeper.client() as client:
        client.ensure_path(chroot)
    return chroot


@pytest.fixture
def zookeeper_connect(zookeeper: ZooKeeper, zookeeper_chroot: str) -> str:
    """The connect string of this test's own tree."""
    return zookeeper.connect + zookeeper_chroot


@pytest.fixture(scope="session")
def kubernetes_api(servers_folder: RunFolder) -> Iterator[KubernetesCluster]:
    """An API server that all tests share, or the cluster of `$KUBECONFIG`."""
    with own_or_given_cluster(servers_folder) as cluster:
        yield cluster


def pytest_addoption(parser: pytest.Parser) -> None:
    levels.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    levels.register(config)
    config.pluginmanager.register(CpuLimit())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = item.fixturenames if isinstance(item, pytest.Function) else ()
        for fixture in _REAL_FIXTURES.keys() & set(fixtures):
            item.add_marker(pytest.mark.real(*_REAL_FIXTURES[fixture]))
        if item.get_closest_marker("real") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_REAL_TIMEOUT_S))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Make tests wait until their servers fit beside those of other runs. The wait does not count as a test's time."""

    def say(text: str) -> None:
        with show_in_terminal(session.config):
            progress.say(text)

    machine_tokens().wait_for_others(say)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Fills the cache before the first test: a first build takes longer than any one test may."""
    real = [mark for item in session.items for mark in item.iter_markers("real")]
    needed = [mark for item in session.items for mark in item.iter_markers("needs")]
    parts = {part for mark in (*real, *needed) for part in mark.args} | ({Part.KAFKA} if real else set())
    if parts and not session.config.option.collectonly:
        with show_in_terminal(session.config):
            fill_cache(parts)
            if any("e2e" in item.path.parts for item in session.items):
                with suppress(NoCluster):  # the tests are skipped with the reason
                    prepare_pods()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Pass the folders of kept logs from a worker process to the one that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["kept_logs"] = session.config.stash.get(_KEPT_LOGS, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash.setdefault(_KEPT_LOGS, []).extend(getattr(node, "workeroutput", {}).get("kept_logs", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for folder in config.stash.get(_KEPT_LOGS, []):
        terminalreporter.write_line(f"The servers' logs are in {folder}")
