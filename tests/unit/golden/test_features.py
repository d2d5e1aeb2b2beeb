"""The tests of `test_features` that only ask the controller, without a server."""

from tests.real.conformance.test_features import (  # noqa: F401
    test_each_feature_has_its_own_answer_and_of_two_updates_of_one_the_first_counts,
    test_no_update_is_an_update_without_answers,
    test_the_first_version_is_still_understood,
    test_what_cannot_be_is_refused_in_the_same_words,
)
