"""The password of a ZooKeeper session follows from the session's id, as in ZooKeeper."""

import pytest

from devcluster.clients.sessions import session_password


@pytest.mark.parametrize(
    ("session_id", "password"),
    [
        (72057594037927941, "51d0af4ab760fac5eaf29f8f5a96423a"),
        (72068774849502831, "72d75ee813db59c7f5c866f8a8762859"),
        (-9223070545879721283, "f994b699e0ffc6b73da75304d9d783c1"),
    ],
)
def test_a_sessions_password_is_that_of_javas_random_numbers(session_id: int, password: str) -> None:
    assert session_password(session_id).hex() == password
