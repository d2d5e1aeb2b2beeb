"""The tests of `test_section_1_protocol` that ask the controller, without a server.

The others ask brokers, or are answered by one in the controller's name (ApiVersions).
"""

from tests.real.conformance.test_section_1_protocol import (  # noqa: F401
    test_a_broker_that_is_not_there_cannot_ask_for_its_shutdown,
    test_a_broker_that_is_not_there_is_answered_so_though_it_names_an_epoch,
    test_a_former_life_of_a_broker_cannot_ask_for_its_shutdown,
    test_a_refused_partition_holds_up_no_other_of_its_request,
    test_a_request_whose_answer_was_lost_succeeds_again_without_a_write,
    test_a_state_that_somebody_else_wrote_is_not_overwritten,
    test_a_state_that_somebody_else_wrote_is_read_again,
    test_an_alter_partition_is_refused_as_a_whole,
    test_an_empty_isr_is_refused,
    test_an_isr_is_refused_with_its_error_and_nothing_changes,
    test_an_isr_of_an_unknown_partition_is_refused,
    test_an_isr_of_an_unknown_topic_id_is_refused,
    test_an_isr_that_is_granted_keeps_the_leader_epoch_and_is_sent_to_everybody,
    test_an_isr_that_somebody_else_than_the_leader_asks_for_is_refused,
    test_only_a_broker_as_it_is_registered_gets_producer_ids,
)
