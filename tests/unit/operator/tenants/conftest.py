"""Operators that end with their test."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.unit.operator.tenants.operated import Operated


@pytest.fixture
async def operating() -> AsyncIterator[Callable[..., Operated]]:
    """Makes operators of ZooKeepers by host."""
    made: list[Operated] = []

    def make(*arguments: Any, **options: Any) -> Operated:
        made.append(Operated(*arguments, **options))
        return made[-1]

    yield make
    for each in made:
        await each.close()
