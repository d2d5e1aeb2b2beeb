"""A promise that was not kept is noticed."""

from devcluster.clients.load import Acknowledged, lost


def _acknowledged(value: str) -> Acknowledged:
    return Acknowledged(partition=0, offset=int(value), value=value)


def test_an_acknowledged_value_that_cannot_be_read_is_lost() -> None:
    promises = [_acknowledged("1"), _acknowledged("2"), _acknowledged("3")]
    assert lost(promises, {"1", "3", "4"}) == [_acknowledged("2")]


def test_values_that_were_never_acknowledged_are_no_loss() -> None:
    assert lost([_acknowledged("1")], {"1", "2"}) == []
