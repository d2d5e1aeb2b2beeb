"""The commands of the pages: all are run by `tests/e2e/pages`, or say why not, and the cluster has one name in all."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller_operator.resources import KINDS
from tests.e2e.pages.page_commands import Block, CommandFailed, read_blocks, run_block
from tests.e2e.pages.walks import WALKS, Walk
from tests.e2e.release import PROJECT

PAGES = sorted(
    str(path.relative_to(PROJECT))
    for pattern in ("*.md", "docs/*.md", "charts/*/*.md", "images/*.md", "examples/**/*.md")
    for path in PROJECT.glob(pattern)
)
COMMAND_LINE = re.compile(r"^ {5,}((?:kubectl|helm|kontroller|make) .*)$", re.MULTILINE)
EXAMPLES = [path for path in (PROJECT / "examples").rglob("*.yaml") if "argocd" not in path.parts]
NOTES = PROJECT / "charts" / "kontroller" / "templates" / "NOTES.txt"


@pytest.mark.parametrize("page", PAGES)
def test_a_block_of_commands_is_run_or_says_why_not(page: str) -> None:
    run = [block for walk in WALKS if walk.page == page for block in walk.blocks()]
    assert [each for each in read_blocks(PROJECT / page) if each.not_run is None and each not in run] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_command_in_a_list_is_a_block_on_the_site_too(page: str) -> None:
    seen = {line.strip() for block in read_blocks(PROJECT / page) for line in block.commands.splitlines()}
    text = (PROJECT / page).read_text()
    assert {line.strip() for line in COMMAND_LINE.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL))} <= seen


@pytest.mark.parametrize("page", PAGES)
def test_no_option_stands_before_the_plugin_because_kubectl_refuses_it(page: str) -> None:
    assert re.findall(r"kubectl (?:-\S+ (?:\S+ )?)+kontroller .*", (PROJECT / page).read_text()) == []


@pytest.mark.parametrize("page", ["docs/operations.md", "docs/migration.md", "docs/gitops.md"])
def test_a_command_beside_another_tool_names_the_kind_with_its_group(page: str) -> None:
    names = "|".join(
        name
        for each in (kind.definition for kind in KINDS)
        for name in (each.kind.lower(), each.plural, each.short_name)
    )
    bare = re.compile(rf"kubectl (?!kontroller)[^\n|]*?\s(?:{names})(?:[\s/].*)?$", re.MULTILINE)
    assert bare.findall((PROJECT / page).read_text().replace("`", "\n")) == []


@pytest.mark.parametrize("walk", WALKS, ids=str)
def test_a_walk_has_commands(walk: Walk) -> None:
    assert walk.blocks()


@pytest.mark.parametrize("page", PAGES)
def test_a_block_that_is_not_run_because_the_start_page_has_it_has_the_same_commands(page: str) -> None:
    start = {line for block in read_blocks(PROJECT / "docs" / "start.md") for line in list_commands(block)}
    same = [each for each in read_blocks(PROJECT / page) if "start.md" in (each.not_run or "")]
    assert [line for block in same for line in list_commands(block) if line not in start] == []


def test_the_readme_installs_as_the_start_page_does() -> None:
    (installation,) = [each for each in read_blocks(PROJECT / "README.md") if each.section == "Install it"]
    assert "start.md" in (installation.not_run or "")


def list_commands(block: Block) -> list[str]:
    """Return the commands of a block without their comments."""
    return [line.split("#")[0].strip() for line in block.commands.splitlines()]


def test_the_cluster_has_one_name_in_the_examples_the_notes_and_the_commands() -> None:
    objects: list[dict[str, Any]] = [each for path in EXAMPLES for each in yaml.safe_load_all(path.read_text()) if each]
    clusters = {each["metadata"]["name"] for each in objects if each.get("kind") == "KafkaCluster"}
    references = {each["spec"]["clusterRef"]["name"] for each in objects if "clusterRef" in each.get("spec", {})}
    texts = [NOTES.read_text(), *((PROJECT / page).read_text() for page in PAGES)]
    pattern = r"\bkcl/([a-z-]+)|\bkafkacluster ([a-z-]+)|kind: KafkaCluster\s+metadata:\s+\{?name: ([a-z-]+)"
    named = {name for text in texts for found in re.findall(pattern, text) for name in found if name}
    assert clusters == references == named == {"demo"}


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
        "# Page\n\n## One\n\nText.\n\n    kubectl get nodes\n\n<!-- not run: it takes hours -->\n\n    make soak\n\n"
        "1. A list:\n\n    <!-- not run: no krew -->\n\n        kubectl krew list\n\n"
        "## Two\n\n    helm list\n\n<!-- nothing below is run: no engine -->\n\n```sh\npodman ps\n```\n\n    docker ps -a\n"
    )
    assert list(read_blocks(page)) == [
        Block(section="One", commands="kubectl get nodes\n", not_run=None),
        Block(section="One", commands="make soak\n", not_run="it takes hours"),
        Block(section="One", commands="kubectl krew list\n", not_run="no krew"),
        Block(section="Two", commands="helm list\n", not_run=None),
        Block(section="Two", commands="podman ps\n", not_run="no engine"),
        Block(section="Two", commands="docker ps -a\n", not_run="no engine"),
    ]
