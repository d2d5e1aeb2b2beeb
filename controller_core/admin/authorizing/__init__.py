"""Whether who asks may have an answer, by Kafka's ACLs; and of a request of several parts, which parts."""
