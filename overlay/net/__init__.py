"""Driver 1: a host on trio, ZeroMQ and UDP.

One ROUTER per node receives everything, one DEALER per outgoing link sends everything. All
descriptors sit in one epoll set on which one task waits; a *tick* drains them, runs due timers,
and flushes every link once.
"""
