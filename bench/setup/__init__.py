"""The setup of measurements: the data, the Java servers, the machine and its disk."""
