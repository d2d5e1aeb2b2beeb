"""Authentication of clients on a listener: properties of a broker, certificates, logins."""
