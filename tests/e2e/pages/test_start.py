"""The commands of the pages that users follow, word for word, on the cluster that `make try` gives them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from devcluster.node.pods import PodCluster
from tests.e2e.pages.page_commands import Block, CommandFailed, read_blocks, run_block
from tests.e2e.release import PROJECT

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

START: Final = PROJECT / "docs" / "start.md"
OPERATIONS: Final = PROJECT / "docs" / "operations.md"
README: Final = PROJECT / "README.md"
NAMED: Final = ("charts", "crds", "examples")
"""The folders that commands name."""


class Reader:
    """A reader who runs commands in a checkout, whose shell reaches the cluster as `make try` says."""

    def __init__(self, folder: Path, clients: Path) -> None:
        self._folder = folder
        self._environment = {"PATH": f"{clients}:/usr/sbin:/usr/bin:/sbin:/bin"}
        for name in NAMED:
            (folder / name).symlink_to(PROJECT / name)

    def follow(self, page: Path, *sections: str, leaving_out: str | None = None) -> str:
        """Run some sections of a page, or all, and return what the commands print. Raises CommandFailed."""
        blocks = [
            each
            for each in read_blocks(page)
            if each.not_run is None and each.section != leaving_out and (not sections or each.section in sections)
        ]
        assert blocks, f"{page.name} has no commands in {sections}"
        return "".join(run_block(block, self._folder, self._environment) for block in blocks)


@pytest.fixture(scope="module")
def reader(pods: PodCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """The reader. Everything is uninstalled at the end."""
    if pods.images:
        pytest.skip("the pages name images without a registry, and the cluster of KUBECONFIG pulls them from one")
    reader = Reader(tmp_path_factory.mktemp("checkout"), pods.kubernetes.write_clients())
    yield reader
    if "namespace/kafka" in pods.kubernetes.kubectl("get", "namespaces", "--output", "name").split():
        reader.follow(START, "Uninstall")


def test_the_installation_ends_with_the_message_that_was_written(reader: Reader) -> None:
    printed = reader.follow(START, "Install on Kubernetes")
    assert "kafkacluster.kontroller.dev/demo condition met" in printed
    assert "hello" in printed.split()


def test_the_tour_moves_a_topic_and_loses_no_message(reader: Reader) -> None:
    printed = reader.follow(START, "A tour")
    assert "partitionreassignment.kontroller.dev/tour condition met" in printed
    assert "23600" in printed.split()


def test_what_operators_look_at_is_there(reader: Reader) -> None:
    printed = reader.follow(OPERATIONS, leaving_out="Uninstall")
    assert "kontroller_controller_epoch" in printed


def test_nothing_is_left_after_the_uninstall(reader: Reader, pods: PodCluster) -> None:
    reader.follow(START, "Uninstall")
    assert "kontroller" not in pods.kubernetes.kubectl("get", "crds,namespaces,clusterroles", "--output", "name")


def test_the_readme_installs_as_the_start_page_does() -> None:
    (installation,) = [each for each in read_blocks(README) if each.section == "Install it"]
    known = {line.split("#")[0].strip() for block in read_blocks(START) for line in block.commands.splitlines()}
    assert {line.split("#")[0].strip() for line in installation.commands.splitlines()} <= known


@pytest.mark.parametrize("commands", ["false\necho hello", "false | grep hello", "echo hello\nfalse | cat"])
def test_a_command_that_fails_is_reported(commands: str, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="exit status 1"):
        run_block(Block(section="A section", commands=commands, not_run=None), tmp_path, {})


def test_a_grep_that_finds_nothing_is_no_failure(tmp_path: Path) -> None:
    block = Block(section="A section", commands="echo end\necho hello | grep bye", not_run=None)
    assert run_block(block, tmp_path, {}) == "end\n"


def test_a_block_belongs_to_its_section_and_has_the_remark_above_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n## One\n\nText.\n\n    kubectl get nodes\n\n<!-- not run: it takes hours -->\n\n    make soak\n"
    )
    assert list(read_blocks(page)) == [
        Block(section="One", commands="kubectl get nodes\n", not_run=None),
        Block(section="One", commands="make soak\n", not_run="it takes hours"),
    ]
