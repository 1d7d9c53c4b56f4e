"""Keys, certificates, rights and datagrams, with real cryptography throughout."""
