"""Contract tests: subclass a suite in a test file and provide a fixture that creates the implementation."""
