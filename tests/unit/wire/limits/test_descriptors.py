"""The limit of connections leaves descriptors for the controller's own connections."""

import pytest

from controller_core.wire.limits.descriptors import (
    MOST_CONNECTIONS,
    connections_within,
    http_connections_within,
)


@pytest.mark.parametrize(
    ("descriptors", "expected"), [(256, 80), (1024, 320), (4096, 1420), (20_000, 9372), (1_048_576, MOST_CONNECTIONS)]
)
def test_connections_of_all_ports_leave_descriptors_for_our_own(descriptors: int, expected: int) -> None:
    assert connections_within(descriptors) == expected
    others = 2 * connections_within(descriptors) + http_connections_within(descriptors)
    assert descriptors - others >= min(1000, descriptors // 4)
