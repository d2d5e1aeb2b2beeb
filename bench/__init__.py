"""Kontroller's controller and Kafka's own, measured side by side; nothing that ships imports it."""
