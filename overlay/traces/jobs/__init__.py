"""The Spark jobs: each a function from the rows of traces to a table, `latency(rows)`."""

from overlay.traces.jobs.anomalies import anomalies
from overlay.traces.jobs.colony import colony
from overlay.traces.jobs.delivery import delivery
from overlay.traces.jobs.dht import dht
from overlay.traces.jobs.discovery import discovery
from overlay.traces.jobs.job import Digest, Job, Table
from overlay.traces.jobs.latency import latency
from overlay.traces.jobs.membership import membership
from overlay.traces.jobs.mobility import mobility
from overlay.traces.jobs.nodes import nodes
from overlay.traces.jobs.paths import paths
from overlay.traces.jobs.resources import resources
from overlay.traces.jobs.traffic import traffic

JOBS: dict[str, Job] = {
    one.name: one
    for one in (
        nodes,
        delivery,
        latency,
        membership,
        traffic,
        paths,
        dht,
        discovery,
        resources,
        colony,
        mobility,
        anomalies,
    )
}
"""Every job by its name; a new one is a module beside these and a line here."""

__all__ = ["JOBS", "Digest", "Job", "Table"]
