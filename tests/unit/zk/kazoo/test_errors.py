"""The translation of kazoo's errors: each message names what a person has to look at."""

import pytest
from kazoo.exceptions import InvalidACLError, NoAuthError

from controller_core.zk.kazoo.errors import translate_failure
from controller_core.zk.kazoo.session import _values
from controller_core.zk.session import AccessRefused, FailedOp, SetData

DENIED = FailedOp(index=3, op=SetData(path="/brokers/topics/a", data=b"secret"))


@pytest.mark.parametrize("error", [NoAuthError(), InvalidACLError()], ids=lambda error: type(error).__name__)
def test_a_denied_write_names_its_path(error: NoAuthError) -> None:
    translated = translate_failure(error, DENIED)
    assert isinstance(translated, AccessRefused)
    assert translated.denied == DENIED
    assert str(translated).startswith(f"ZooKeeper refuses access to /brokers/topics/a ({type(error).__name__}): grant")


def test_a_denied_read_names_its_path() -> None:
    with pytest.raises(AccessRefused, match="refuses access to /b "):
        _values(["read", NoAuthError()], ["/a", "/b"])
