"""The example shopping street, the demo, and small programs that use the SDK and the stubs."""
