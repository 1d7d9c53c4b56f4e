"""The dashboard: what the nodes of this machine know, as a web page that changes as they do.

sources.py   a node that is asked: through its control socket, or in this process
hub.py       all nodes that are watched: whom to ask, what, and how often
views.py     the pages, as plain values made of the facts that the commands print
channels.py  what changed of a view, told once to all who look at it
security.py  who may look: this machine, or who has the token
app.py       the routes; actions.py what may be done, if that is allowed
server.py    the HTTP server, alone or as a role of a peer
metrics.py   the counters of all nodes for Prometheus

Nobody looks: nobody is asked. A page says which view it shows; the hub asks for what the open views
need, each node once in `period` seconds, and a page is sent what is not as it was sent before.
"""

from overlay.errors import ConfigError

MISSING = "the dashboard needs more packages: pip install 'zmq-overlay[web]'"


def check_installed() -> None:
    """ConfigError with what to do, where the extra is not installed."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("hypercorn", "starlette", "prometheus_client")):
        raise ConfigError(MISSING)
