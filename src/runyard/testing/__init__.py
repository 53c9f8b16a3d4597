"""Contract suites: subclass one in a test file, say how to make your implementation, and it proves the contract."""
