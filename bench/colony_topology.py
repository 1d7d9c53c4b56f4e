"""Transit-stub topologies (Zegura, Calvert and Bhattacharjee 1996), and a tree of brokers on one.

Transit domains hang together at random; each transit node has stub domains, each of them a random
connected graph that is linked to it by one of its nodes, its gateway. The paper does not say how
its tree of leaders lies on that: here it is the shortest-path tree from the root (`shortest`), or
one in which the gateway of a stub domain leads all of the domain (`domains`).
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from random import Random
from typing import TypeAlias

import msgspec

Graph: TypeAlias = dict[int, list[int]]


class Shape(msgspec.Struct, frozen=True):
    """The parameters of the model."""

    nodes: int = 103
    transit_domains: int = 1
    transit_nodes: int = 4  # of each domain
    stubs: int = 3  # of each transit node
    transit_edges: float = 0.6  # probability of an edge between two nodes of a domain
    stub_edges: float = 0.42
    tree: str = "domains"  # or "shortest"


def generate(shape: Shape, rng: Random) -> Graph:
    """A connected graph of exactly `nodes` nodes; the first ones are the transit nodes."""
    transit = shape.transit_domains * shape.transit_nodes
    graph: Graph = {node: [] for node in range(shape.nodes)}
    domains = [
        list(range(first, first + shape.transit_nodes))
        for first in range(0, transit, shape.transit_nodes)
    ]
    for domain in domains:
        _connect(graph, domain, shape.transit_edges, rng)
    for one, other in pairwise(domains):
        _link(graph, rng.choice(one), rng.choice(other))
    sizes = _sizes(shape.nodes - transit, transit * shape.stubs, rng)
    following = transit
    for index, size in enumerate(sizes):
        stub = list(range(following, following + size))
        following += size
        if stub:
            _connect(graph, stub, shape.stub_edges, rng)
            _link(graph, index % transit, rng.choice(stub))
    return graph


def plant(shape: Shape, rng: Random) -> dict[int, int | None]:
    """The leader of each broker, on a new topology; leaders come before those they lead."""
    graph = generate(shape, rng)
    transit = shape.transit_domains * shape.transit_nodes
    leaders = tree(graph, rng.randrange(transit))
    if shape.tree == "domains":
        for node in leaders:
            leader = leaders[node]
            if leader is not None and leader >= transit:
                above = leaders[leader]
                if above is not None and above >= transit:  # its leader's leader is the gateway
                    leaders[node] = above
    return leaders


def tree(graph: Graph, root: int) -> dict[int, int | None]:
    """The leader of each node: the next one on a shortest way to the root; roots first."""
    leaders: dict[int, int | None] = {root: None}
    todo = deque([root])
    while todo:
        node = todo.popleft()
        for neighbour in graph[node]:
            if neighbour not in leaders:
                leaders[neighbour] = node
                todo.append(neighbour)
    return leaders


def depths(leaders: dict[int, int | None]) -> dict[int, int]:
    """How far each node is from the root."""
    found: dict[int, int] = {}
    for node, leader in leaders.items():  # leaders come before those they lead
        found[node] = 0 if leader is None else found[leader] + 1
    return found


def _sizes(nodes: int, stubs: int, rng: Random) -> list[int]:
    """So many nodes in so many stubs, each as likely in one as in another."""
    sizes = [1] * stubs if nodes >= stubs else [0] * stubs
    for _ in range(nodes - sum(sizes)):
        sizes[rng.randrange(stubs)] += 1
    return sizes


def _connect(graph: Graph, nodes: list[int], probability: float, rng: Random) -> None:
    """A random graph on these nodes, which a random tree keeps connected."""
    for index, node in enumerate(nodes[1:], 1):
        _link(graph, node, nodes[rng.randrange(index)])
    for index, node in enumerate(nodes):
        for other in nodes[index + 1 :]:
            if other not in graph[node] and rng.random() < probability:
                _link(graph, node, other)


def _link(graph: Graph, one: int, other: int) -> None:
    if other not in graph[one]:
        graph[one].append(other)
        graph[other].append(one)
