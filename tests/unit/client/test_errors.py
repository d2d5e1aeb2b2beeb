"""The errors of the client side are one hierarchy, so that a caller needs one `except`, and the type names the policy."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

import pytest

from controller_core.client.errors import AdminError

PACKAGES = (
    "controller_core.client",
    "controller_core.polling",
    "controller_operator.clusters",
)


def find_errors(package: str) -> Iterator[type[Exception]]:
    """Yield the exceptions that the modules of a package define."""
    for module in walk_packages(import_module(package).__path__, f"{package}."):
        for _, found in inspect.getmembers(import_module(module.name), inspect.isclass):
            if issubclass(found, Exception) and found.__module__ == module.name:
                yield found


@pytest.mark.parametrize("package", PACKAGES)
def test_every_error_of_a_cluster_is_an_admin_error_and_says_what_may_be_done(package: str) -> None:
    found = [*find_errors(package)]
    assert found
    assert [each.__qualname__ for each in found if not issubclass(each, AdminError) or not each.__doc__] == []
