"""Commands that administer a Kafka cluster from the outside, with the admin client."""
