"""Benchmarks of Kontroller's controller and Kafka's own, side by side; no shipped module imports it."""
