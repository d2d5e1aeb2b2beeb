"""The lint of prose finds three habits, and nothing else."""

from pathlib import Path

import pytest

from scripts.checks.prose import Findings, Habit, read_all, read_findings


def find_habits(source: str) -> list[tuple[Habit, str]]:
    """Return the habits of a module and the words that show them."""
    return [(place.habit, place.words) for place in read_findings(source, "a.py").places]


@pytest.mark.parametrize("word", ["What", "Who", "Whose", "Which", "How", "Why", "Where", "Whether"])
def test_a_docstring_that_opens_with_a_question_word_is_found(word: str) -> None:
    text = f"{word} a thing is."
    assert find_habits(f'def read() -> None:\n    """{text}"""') == [(Habit.DOCSTRING, text), (Habit.SENTENCE, text)]


def test_a_docstring_that_begins_with_a_verb_or_a_noun_is_right() -> None:
    assert find_habits('"""Return the live replicas."""\nX = 1\n"""The highest count, which is a number."""') == []


def test_the_docstring_of_a_value_is_read_too() -> None:
    assert find_habits('class A:\n    x: int\n    """How often that was."""')[0] == (
        Habit.DOCSTRING,
        "How often that was.",
    )


def test_the_texts_of_options_and_fields_are_read_too() -> None:
    source = 'X = Field(default=1, description="How often.")\nY = Option(help="Whether " "it runs.")'
    assert [words for habit, words in find_habits(source) if habit is Habit.DOCSTRING] == [
        "How often.",
        "Whether it runs.",
    ]


def test_a_sentence_inside_a_text_is_found_and_a_question_is_none() -> None:
    source = '"""Reads all.\n\nWho lags\nis taken out. Where is it read? In the log."""'
    assert find_habits(source) == [(Habit.SENTENCE, "Who lags is taken out.")]


def test_comments_are_read_block_by_block_and_those_for_tools_are_not() -> None:
    source = "# It runs. What is\n# asked for is done.\nx = 1  # noqa: What\n"
    assert find_habits(source) == [(Habit.SENTENCE, "What is asked for is done.")]


@pytest.mark.parametrize("name", ["told", "_lifted", "of", "shown_rows", "counting", "without"])
def test_a_function_named_by_a_participle_or_a_preposition_is_found(name: str) -> None:
    assert find_habits(f"def {name}() -> None: ...") == [(Habit.NAME, name)]


@pytest.mark.parametrize(
    "name", ["read_topics", "is_live", "needs", "on_brokers_changed", "string", "proceed", "bring"]
)
def test_a_function_named_by_a_verb_is_right(name: str) -> None:
    assert find_habits(f"async def {name}() -> None: ...") == []


def test_a_property_and_a_fixture_may_be_named_by_an_adjective() -> None:
    assert find_habits("@property\ndef told(self): ...\n@pytest.fixture(scope='module')\ndef shared(): ...") == []


def test_all_modules_are_counted(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text('"""How it is."""\ndef told() -> None: ...\n')
    findings: Findings = read_all(tmp_path, ["a.py", "b.py"])
    assert findings.counts == {Habit.DOCSTRING: 2, Habit.SENTENCE: 2, Habit.NAME: 2}
    assert str(findings.places[0]) == "a.py:1: docstring: How it is."
