"""Hosts in network namespaces: real peers under real loss, partitions and delay, on one machine.

`with Lab() as lab:` builds hosts on bridges; see `lab.py` for what it can do to them. The lab
needs root, iproute2, nftables and /dev/net/tun: `rights.py` says what is missing, and skips, or
fails where CI=true.
"""
