"""Who connects to a listener: what it wants of them by a broker's properties, certificates, logins."""
