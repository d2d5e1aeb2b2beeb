"""The requests of `test_admin_requests` without a server."""

from tests.real.conformance.test_admin_requests import *  # noqa: F403
