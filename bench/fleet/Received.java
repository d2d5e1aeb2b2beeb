/** A request of the controller, as bytes, and when the last of them was read. */
record Received(StubBroker broker, long receivedUs, byte[] frame) {}
