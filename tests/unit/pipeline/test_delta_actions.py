"""The actions in a log of Delta Lake about a store's parts, and the parts that remain."""

import json

import pytest

from kontroller.history.delta import checkpoint
from kontroller.history.delta.actions import (
    PROTOCOL,
    Info,
    State,
    folders_of,
    info_of,
    lines_of,
    list_partition_columns,
    make_add,
    make_metadata,
    make_remove,
    select_expired,
    state_after,
    text_of,
)
from kontroller.history.generations.folders import File
from kontroller.history.generations.generation import Part
from kontroller.history.schemas import EVENTS, KNOWN_SPANS

INFO = Info(at_ms=5, id="its-id", created_ms=4, parts="p", columns="c")


def file_of(part: str) -> File:
    return File(name=f"{part}/range=0/part-0.parquet", size_bytes=7, changed_ms=1000)


OF_A_DAY = file_of("3-aa/of=c/day=2026-01-02")


def state_of(*files: File) -> State:
    described_by = make_metadata(EVENTS, list_partition_columns(EVENTS, files), INFO)
    return state_after({}, [PROTOCOL, described_by, *map(make_add, files)])


class TestAFileOfAPart:
    def test_has_the_cluster_and_the_day_that_its_folders_are_named_after(self) -> None:
        said = make_add(OF_A_DAY)["add"]
        assert said["path"] == "3-aa/of=c/day=2026-01-02/range=0/part-0.parquet"
        assert said["partitionValues"] == {"of": "c", "day": "2026-01-02"}

    def test_of_a_cluster_with_a_strange_name_is_found_by_an_address_and_has_the_name(self) -> None:
        said = make_add(file_of("3-aa/of=a%3Ab c%2F%25/day=2026-01-02"))["add"]
        assert said["path"].startswith("3-aa/of=a%253Ab%20c%252F%2525/day=2026-01-02/")
        assert said["partitionValues"]["of"] == "a:b c/%"

    def test_of_a_cluster_without_a_name_has_none(self) -> None:
        said = make_remove(file_of("3-aa/of=__HIVE_DEFAULT_PARTITION__/day=2026-01-02"), 9)["remove"]
        assert (said["partitionValues"]["of"], said["deletionTimestamp"]) == (None, 9)

    def test_of_a_table_that_is_not_divided_has_no_such_values(self) -> None:
        assert make_add(file_of("3-aa"))["add"]["partitionValues"] == {}


class TestATable:
    def test_has_its_columns_and_those_that_divide_it(self) -> None:
        said = make_metadata(EVENTS, list_partition_columns(EVENTS, [OF_A_DAY]), INFO)["metaData"]
        names = [field["name"] for field in json.loads(said["schemaString"])["fields"]]
        assert names == [*EVENTS.schema.fieldNames(), "of", "day"]
        assert said["partitionColumns"] == ["of", "day"]

    def test_that_has_no_file_yet_is_divided_by_day_where_it_will_be(self) -> None:
        assert list_partition_columns(EVENTS, []) == ["of", "day"]
        assert list_partition_columns(KNOWN_SPANS, []) == []

    def test_that_is_divided_by_cluster_alone_has_that_column(self) -> None:
        assert list_partition_columns(
            KNOWN_SPANS, [File(name="3-aa/of=c/file=0/p.parquet", size_bytes=1, changed_ms=1)]
        ) == ["of"]


class TestACommit:
    def test_says_of_itself_what_it_was_made_of(self) -> None:
        commit = text_of([INFO.line(12), PROTOCOL])
        assert info_of(commit) == INFO
        assert lines_of(commit)[0]["commitInfo"]["userMetadata"] == "generation 12"

    @pytest.mark.parametrize("commit", ["", "no JSON", '{"add":{}}', '{"commitInfo":{"kontroller":{"parts":"p"}}}'])
    def test_of_somebody_else_says_nothing(self, commit: str) -> None:
        assert info_of(commit) is None

    def test_is_of_a_table_that_nobody_else_can_write_to_and_everybody_can_read(self) -> None:
        said = PROTOCOL["protocol"]
        assert (said["minReaderVersion"], said["minWriterVersion"], len(said["writerFeatures"])) == (1, 7, 1)


class TestAState:
    def test_has_the_last_line_of_each_file(self) -> None:
        after = state_after(state_of(OF_A_DAY), [make_remove(OF_A_DAY, 9)])
        assert [next(iter(line)) for line in after.values()] == ["protocol", "metaData", "remove"]

    def test_is_the_same_after_a_checkpoint(self) -> None:
        other = file_of("3-aa/of=__HIVE_DEFAULT_PARTITION__/day=2026-01-03")
        state = state_after(state_of(OF_A_DAY, other), [make_remove(other, 9)])
        assert checkpoint.read(checkpoint.encode(state)) == state


class TestWhatLeftATable:
    def test_ends_when_it_had_its_days_and_nobody_uses_it(self) -> None:
        later, used = file_of("3-aa/of=c/day=2026-01-03"), file_of("3-aa/of=c/day=2026-01-04")
        left = [make_remove(OF_A_DAY, 9), make_remove(later, 10), make_remove(used, 9)]
        state = state_after(state_of(OF_A_DAY, later, used), left)
        gone = select_expired(state, 10, [Part("3-aa/of=c/day=2026-01-04")])
        assert folders_of(gone, state) == ["3-aa/of=c/day=2026-01-02"]

    def test_is_used_with_the_whole_write_where_that_is_the_part(self) -> None:
        state = state_after(state_of(OF_A_DAY), [make_remove(OF_A_DAY, 9)])
        assert select_expired(state, 10, [Part("3-aa")]) == {}

    def test_is_the_whole_write_when_nothing_of_that_is_left(self) -> None:
        other = file_of("4-bb/of=c/day=2026-01-02")
        state = state_after(state_of(OF_A_DAY, other), [make_remove(OF_A_DAY, 9)])
        assert folders_of(select_expired(state, 10, []), state) == ["3-aa"]

    def test_is_not_what_the_table_has(self) -> None:
        assert select_expired(state_of(OF_A_DAY), 10, []) == {}
