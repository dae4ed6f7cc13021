"""The child process that runs one side; it needs the standard library and perhaps torch."""
