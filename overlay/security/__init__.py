"""Who may be in the overlay: an authority, node certificates, datagrams that prove their sender.

A *running node* needs `credentials`, `certificate` and `datagram`; only `overlay keys` imports
`authority`. Nothing here imports trio or zmq, and this package imports nothing by itself, so
that an insecure node never pays for cryptography.

    rights, patterns    what a certificate allows
    identity            who a peer has proven to be
    certificate         format of a node certificate, and the verifier
    revocation          the authority's signed list of certificates to refuse
    credentials         what a node holds on disk and in memory
    authority           creates, issues, revokes
    datagram, replay    signed datagrams, each accepted once
    sealing             a body for one reader only
    plain               the insecure counterpart of `datagram`
    folders, files      where keys lie, and how they are written
"""
