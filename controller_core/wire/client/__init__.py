"""Kontroller as a client of Kafka: requests to the controller or to a broker, and what is asked with them."""
