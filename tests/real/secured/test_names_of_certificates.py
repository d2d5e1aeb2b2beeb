"""Certificates get the names that Kafka's own classes give them, or are refused: random ones, the same in every run.

`make fuzz` compares others, for longer.
"""

from random import Random

import pytest

from tests.fuzz.principals import compare_rules, compare_subjects

pytestmark = pytest.mark.real


def test_rules_give_the_names_that_kafka_gives_or_are_refused() -> None:
    compared = compare_rules(Random(40), 4000)
    assert compared.differences == ()
    assert compared.equal > compared.refused


def test_subjects_are_written_as_java_writes_them_or_are_refused() -> None:
    compared = compare_subjects(Random(40), 4000)
    assert compared.differences == ()
    assert compared.equal > compared.refused
