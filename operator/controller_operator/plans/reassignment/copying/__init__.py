"""The copies that a move makes: what brokers say of them, how far they are, and which of them do not get on."""
