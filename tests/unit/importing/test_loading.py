"""Files of any encoding become documents; an error costs its own document."""

from typing import Any

import pytest

from kontroller.importing.sources.loading import Fields, Problem, find_repeated_keys, load_documents
from kontroller.importing.values import Plain


def load(text: str | bytes) -> list[Any]:
    return load_documents("f", text if isinstance(text, bytes) else text.encode())


def problems(text: str | bytes) -> list[str]:
    return [str(each) for each in load(text) if isinstance(each, Problem)]


@pytest.mark.parametrize("text", ["a: 1\r\nb: [x]\r\n", '{"a": 1, "b": ["x"]}'])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_and_windows_line_ends_change_nothing(text: str, encoding: str) -> None:
    assert load(text.encode(encoding)) == [{"a": "1", "b": ["x"]}]


def test_a_byte_order_mark_between_joined_files_changes_nothing() -> None:
    assert load("a: 1\n\ufeff---\nb: 2\n---\n\ufeffc: 3\n") == [{"a": "1"}, {"b": "2"}, {"c": "3"}]


def test_scalars_stay_as_they_were_written() -> None:
    (found,) = load("{a: 010, b: yes, c: 2024-01-01, d: 1:30, e: null, f: ~, g: '1', h: 1_0, =: 1}")
    assert found == {
        "a": "010", "b": "yes", "c": "2024-01-01", "d": "1:30", "e": None, "f": None, "g": "1", "h": "1_0", "=": "1",
    }  # fmt: skip
    assert [type(found[key]) for key in "ag"] == [Plain, str]


def test_numbers_of_json_stay_as_they_were_written() -> None:
    assert load('{"a": 6.048e+08, "b": 12, "c": null, "d": true}') == [
        {"a": "6.048e+08", "b": "12", "c": None, "d": True}
    ]


def test_documents_and_mappings_have_their_lines() -> None:
    found = load("# one\n---\na: {b: 1}\n---\n---\n# none\n---\n\nc:\n  d: 1\n")
    assert [each.line for each in found if each] == [3, 9]
    assert found[-1]["c"].line == 10


def test_an_error_costs_its_own_document() -> None:
    found = load("a: 1\n---\nb: [\n---\nc: 3\n")
    assert [each for each in found if isinstance(each, Fields)] == [{"a": "1"}, {"c": "3"}]
    assert problems("a: 1\n---\nb: [\n---\nc: 3\n")[0].startswith("f:4: is not YAML: ")


def test_directives_are_accepted() -> None:
    assert load("%YAML 1.1\n---\na: 1\n") == [{"a": "1"}]


@pytest.mark.parametrize(
    "text",
    [
        "{{- range .Values.topics }}\nname: {{ .name }}\n---\n{{- end }}\n",
        "kind: KafkaTopic\nmetadata:\n  name: {{ .name }}\n---\na: 1\n",
    ],
)
def test_a_template_is_refused_as_a_whole(text: str) -> None:
    assert [str(each).partition(": ")[2] for each in load(text)] == [
        "the file is a template: render it first, for example with helm template"
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [(b"a: \xff", "UTF-8"), (b"? [a]\n: 1\n", "a key is no text"), (b"a: !!python/name:os.system x", "not YAML")],
)
def test_other_unreadable_files_are_problems(text: bytes, reason: str) -> None:
    assert reason in problems(text)[0]


def test_anchors_and_merges_work_and_override_without_a_complaint() -> None:
    (found,) = load("base: &base {a: 1, b: 2}\nmore: {<<: *base, b: 3}\n")
    assert found["more"] == {"a": "1", "b": "3"}
    assert list(find_repeated_keys(found)) == []


def test_anchors_that_multiply_are_looked_at_once() -> None:
    lines = ["a0: &a0 {x: 1}", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30))]
    (found,) = load("\n".join(lines))
    assert list(find_repeated_keys(found)) == []


@pytest.mark.parametrize("text", ["x: [{a: 1, a: 2}]", '{"x": [{"a": 1, "a": 2}]}'])
def test_repeated_keys_are_found(text: str) -> None:
    assert list(find_repeated_keys(load(text)[0])) == ["a"]
