from collections.abc import Iterator

import pytest

from devcluster.stand_ins.identity_provider import IdentityProvider


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as provider:
        yield provider
