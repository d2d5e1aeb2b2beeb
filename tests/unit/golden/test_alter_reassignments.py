"""The tests of `test_alter_reassignments` that only ask the controller, without a server."""

from tests.real.conformance.test_alter_reassignments import (  # noqa: F401
    test_an_answer_about_a_partition_at_rest,
    test_an_answer_about_a_partition_that_is_not_there,
)
