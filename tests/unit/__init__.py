"""One machine, one function: exact effects, no sockets."""
