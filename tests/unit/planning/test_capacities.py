"""Capacities of brokers in the format of Cruise Control."""

import json

import numpy as np
import pytest

from kontroller.planning.capacities import UnusableCapacitiesError, read_capacities
from tests.unit.planning.snapshots import GIB, make_snapshot

MIB = 1 << 20
ALL = '{"brokerId":"-1","capacity":{"DISK":"100000","CPU":"100","NW_IN":"10000","NW_OUT":"20000"}}'


def test_broker_minus_one_stands_for_all_that_have_no_entry() -> None:
    own = '{"brokerId":"2","capacity":{"DISK":"500","CPU":"100","NW_IN":"1","NW_OUT":"2"},"doc":"a small one"}'
    brokers = read_capacities(f'{{"brokerCapacities":[{ALL},{own}]}}').put_into(make_snapshot()).brokers
    assert brokers.capacity_disk_bytes.tolist() == [100_000 * MIB, 500 * MIB, 100_000 * MIB, 100_000 * MIB]
    assert brokers.capacity_in_bytes_per_second.tolist() == [10_240_000, 1024, 10_240_000, 10_240_000]
    assert brokers.capacity_out_bytes_per_second.tolist() == [20_480_000, 2048, 20_480_000, 20_480_000]


def test_log_directories_of_a_broker_are_added_up() -> None:
    text = '{"brokerCapacities":[{"brokerId":"1","capacity":{"DISK":{"/a":"100","/b":"50"},"CPU":{"num.cores":"8"}}}]}'
    brokers = read_capacities(text).put_into(make_snapshot()).brokers
    assert brokers.capacity_disk_bytes.tolist() == [150 * MIB, 100 * GIB, 100 * GIB, 100 * GIB]
    assert np.isnan(brokers.capacity_in_bytes_per_second).all()


def test_brokers_that_the_cluster_has_not_are_named() -> None:
    text = '{"brokerCapacities":[{"brokerId":"9","capacity":{"DISK":"1"}},{"brokerId":"1","capacity":{"DISK":"1"}}]}'
    assert read_capacities(text).find_unknown_brokers(make_snapshot()) == (9,)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Invalid JSON"),
        ("[]", "it: Input should be an object"),
        ('{"brokerCapacities":[]}', "brokerCapacities: Tuple should have at least 1 item"),
        ('{"brokerCapacities":[{"brokerId":"x","capacity":{}}]}', "brokerCapacities.0.brokerId: "),
        ('{"brokerCapacities":[{"brokerId":"-2","capacity":{}}]}', "greater than or equal to -1"),
        ('{"brokerCapacities":[{"brokerId":"1","capacity":{"DISK":"0"}}]}', "greater than 0"),
        ('{"brokerCapacities":[{"brokerId":"1","capacity":{"DISK":"nan"}}]}', "DISK"),
        ('{"brokerCapacities":[{"brokerId":"1","capacity":{"DISK":"1e400"}}]}', "DISK"),
        ('{"brokerCapacities":[{"brokerId":"1","capacity":{"DISK":{}}}]}', "no log directory is named"),
        ('{"brokerCapacities":[{"brokerId":"1","capacity":{"disk":"5"}}]}', "broker 1 has none of DISK, NW_IN and NW_"),
        (
            '{"brokerCapacities":[{"brokerId":"1","capacity":{"DISK":"-5"}}]}',
            "^brokerCapacities.0.capacity.DISK: Input should be greater than 0: write it as",
        ),
        (
            '{"brokerCapacities":[{"brokerId":"1","capacity":{"DISK":{"/a":"x"}}}]}',
            "^brokerCapacities.0.capacity.DISK./a: Input should be a valid number, unable to parse string as a number: ",
        ),
        (f'{{"brokerCapacities":[{ALL},{ALL}]}}', "broker -1 is there twice"),
    ],
)
def test_a_file_without_usable_capacities_is_refused(text: str, why: str) -> None:
    with pytest.raises(UnusableCapacitiesError, match=why):
        read_capacities(text)


def test_the_example_of_an_error_is_a_usable_file() -> None:
    with pytest.raises(UnusableCapacitiesError) as refused:
        read_capacities("{}")
    example = str(refused.value).partition("write it as ")[2]
    assert json.loads(example)
    assert read_capacities(example)
