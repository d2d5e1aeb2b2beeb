"""Values of files become the texts that Kafka parses as their authors mean them."""

import pytest

from kontroller.importing.values import Plain, Unreadable, normalize_config, read_count

LONG_MAX = "9223372036854775807"


@pytest.mark.parametrize(
    ("key", "written", "text"),
    [
        ("retention.ms", Plain("604800000"), "604800000"),
        ("retention.ms", Plain("6.048e+08"), "604800000"),
        ("retention.ms", "6.048e+08", "604800000"),  # Helm quotes what it has made a float
        ("retention.ms", Plain("604800000.0"), "604800000"),
        ("retention.ms", 604800000, "604800000"),
        ("retention.ms", Plain("-1"), "-1"),
        ("retention.ms", " 1000 ", "1000"),
        ("max.message.bytes", Plain("1_048_576"), "1048576"),
        ("segment.bytes", Plain("0x40000000"), "1073741824"),
        ("segment.bytes", Plain("0o10000"), "4096"),
        ("segment.ms", "010", "010"),  # quoted, as Kafka reads it: 10
        ("flush.messages", Plain("9.223372036854775807e+18"), LONG_MAX),
        ("flush.messages", Plain("9.223372036854776e+18"), LONG_MAX),
        ("preallocate", Plain("yes"), "true"),
        ("preallocate", Plain("OFF"), "false"),
        ("preallocate", True, "true"),
        ("preallocate", "False", "false"),
        ("cleanup.policy", [Plain("compact"), Plain("delete")], "compact,delete"),
        ("cleanup.policy", "compact, delete", "compact, delete"),
        ("message.format.version", Plain("2.10"), "2.10"),
        ("compression.type", Plain("off"), "off"),
        ("min.cleanable.dirty.ratio", Plain("0.50"), "0.50"),
        ("remote.copy.lag.ms", Plain("5"), "5"),
    ],
)
def test_a_value_becomes_the_text_for_the_type_of_its_key(key: str, written: object, text: str) -> None:
    assert normalize_config(key, written) == text


@pytest.mark.parametrize("written", ["7d", "0b9", "1e999999999", ".inf", "0.5", "-", ""])
def test_a_text_that_is_no_whole_number_stays_for_the_table_to_refuse(written: str) -> None:
    assert normalize_config("retention.ms", Plain(written)) == written


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("segment.ms", Plain("010")),
        ("retention.ms", ["1"]),
        ("retention.ms", {"days": 7}),
        ("cleanup.policy", [["compact"]]),
    ],
)
def test_a_value_without_one_meaning_is_unreadable(key: str, written: object) -> None:
    with pytest.raises(Unreadable):
        normalize_config(key, written)


@pytest.mark.parametrize(
    ("written", "count"),
    [(Plain("3"), 3), ("3", 3), (3, 3), (Plain("3.0"), 3), (Plain("-1"), None), (None, None)],
)
def test_a_count_is_a_number_or_left_to_the_brokers(written: object, count: int | None) -> None:
    assert read_count(written) == count


@pytest.mark.parametrize("written", [Plain("0"), Plain("-2"), "three", "", "1.5", "9" * 5_000, True, [], {}])
def test_an_impossible_count_is_unreadable(written: object) -> None:
    with pytest.raises(Unreadable):
        read_count(written)
