"""docs/cli.md has the help texts of the commands, with an example of each."""

from kontroller.cli.administering.examples import EXAMPLES
from kontroller.cli.administering.groups import GROUPS
from scripts.cli_page import PAGE, page


def test_the_committed_page_is_that_of_the_commands() -> None:
    assert PAGE.read_text() == page(), "run `make cli`"


def test_every_command_has_an_example() -> None:
    headings = [line.removeprefix("### ") for line in page().splitlines() if line.startswith("### ")]
    assert headings
    assert {heading.split()[0] for heading in headings} == set(GROUPS)
    assert set(headings) == {example.command for example in EXAMPLES}
