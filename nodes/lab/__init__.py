"""`overlay lab`: peers on many machines, with nothing on them but Python and sshd.

    inventory.py       what the user wrote: hosts, zones, roles, settings; wrong things in one line
    inventory_file.py  the file as text: a first one, a host more, a host less
    plan.py            the peers that it means: names, ports, words (pure)
    operator.py        what this machine keeps of a lab: its authority, its lock, whom it reached
    ssh.py, remote.py  one connection for each host; the agent there (`onhost/`)
    fleet.py           all hosts at once: whoever fails is named, the others go on
    checks.py          what is wrong with a host, before it is changed (pure)
    wheels.py          one wheel, and wheelhouses for the hosts' Pythons, cached by content
    keys.py            certificates: each host gets those of its own peers
    agreement.py       whether all zone tables say the same (pure)
    rolling.py         restarts one by one, each after the zones agree again
    up.py, upgrade.py, ending.py, gathering.py: the commands

Everything may be interrupted and done again: what is there and right is left as it is.
"""
