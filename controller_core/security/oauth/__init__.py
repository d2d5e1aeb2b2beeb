"""Logins by OAuth 2 tokens (SASL/OAUTHBEARER), with the properties of Kafka's own login and validator."""
