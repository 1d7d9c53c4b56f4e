"""The dashboard, without sockets."""
