"""Proves that a side of a contest reaches at least some score, by proof-number search.

A claim is true or false, so what remains to choose is where to look next. The search goes where the
fewest open contests are left to decide (df-pn: Nagai, "Df-pn algorithm for searching AND/OR trees
and its applications"). The graph keeps bounds of every contest's score, which serve all targets;
territory gives a new contest its first numbers: cells owned or nearer to a side.

The claimant waits only in turns that cost it nothing, the other side may wait more often than the
rules let it. So a claim that is proven holds in the game; one that is refuted may still hold.

Like `train.solver.contest`, the functions here run in the interpreter and compiled. Only how a
`Graph` is stored differs: in lists and a dict here, in arrays there.
"""

from typing import Any, NamedTuple

from train.solver.contest import (
    Contest,
    Geometry,
    after_wait,
    after_wall,
    bounds,
    expected_score,
    turns,
)

NEVER = 1 << 40
"""Contests that must be decided where nothing can decide."""
MAX_CHILDREN = 4 * 13 * 4 + 1
"""Plies of a contest, a wait included."""
MAX_PLIES = 256
"""Plies that a line can be long; a longer one ends the search."""
_NODES, _EDGES = 0, 1  # places in `used`


class Graph(NamedTuple):
    """All contests that one claimant's claims have met; each has a number, its node."""

    places: Any  # finds the node of a contest
    contests: Any  # [node]
    low: Any  # [node] score that the claimant surely reaches
    high: Any  # [node] score that the claim cannot exceed
    expected: Any  # [node] guess of the claimant's score
    proof: Any  # [node] contests that must at least come true to prove the target
    disproof: Any  # [node] or fail to refute it
    target: Any  # [node] the target of these two numbers
    start: Any  # [node] first edge, -1 before the node is expanded
    count: Any  # [node] edges
    parent: Any  # [node] the last node that got an edge to it
    edges: Any  # [edge] nodes after one ply
    used: Any  # nodes, edges


def make_graph(capacity: int) -> Graph:
    """An empty graph for the interpreter, with room for this many nodes and edges."""
    empty = [0] * capacity
    return Graph(
        places={},
        contests=[None] * capacity,
        low=empty[:],
        high=empty[:],
        expected=empty[:],
        proof=empty[:],
        disproof=empty[:],
        target=empty[:],
        start=empty[:],
        count=empty[:],
        parent=empty[:],
        edges=empty[:],
        used=[0, 0],
    )


def make_stack() -> tuple[list[int], ...]:
    """A stack for `search`."""
    return tuple([0] * MAX_PLIES for _ in range(3))


def new_place(graph: Graph, contest: Contest) -> int:
    """The node of a contest; one that is new gets the next number, which counts as used."""
    node = graph.places.setdefault(contest, graph.used[_NODES])
    if node == graph.used[_NODES]:
        graph.contests[node] = contest
        graph.used[_NODES] += 1
    return node


def contest_at(graph: Graph, node: int) -> Contest:
    """The contest of a node."""
    return graph.contests[node]


def node_of(graph: Graph, contest: Contest, claimant: int, geometry: Geometry) -> int:
    """The node of a contest, with its bounds if it is new."""
    before = graph.used[_NODES]
    node = new_place(graph, contest)
    if graph.used[_NODES] > before:
        low, high = claimed_bounds(contest, claimant, geometry)
        expected = low
        if low < high:
            expected = claimed_score(contest, claimant, geometry)
        graph.low[node], graph.high[node] = low, high
        graph.expected[node] = min(max(expected, low), high)
        graph.target[node] = NEVER
        graph.start[node] = graph.parent[node] = -1
    return node


def claimed_bounds(contest: Contest, claimant: int, geometry: Geometry) -> tuple[int, int]:
    """Scores that the claimant surely reaches, and that it surely does not exceed."""
    low, high = bounds(contest, geometry)
    return (-high, -low) if claimant else (low, high)


def claimed_score(contest: Contest, claimant: int, geometry: Geometry) -> int:
    """A guess of the claimant's score."""
    expected = expected_score(contest, geometry)
    return -expected if claimant else expected


def first_numbers(expected: int, target: int) -> tuple[int, int]:
    """Proof and disproof number of a contest that nothing decides yet, by its lag."""
    lag = target - expected
    return 1 + max(0, lag), 1 + max(0, -lag)


def children(contest: Contest, claimant: int, geometry: Geometry) -> list[Contest]:
    """The contests after each ply of the player to move; a wait is the last."""
    own = contest.second if contest.player else contest.first
    stones = contest.first | contest.second
    after = [
        after_wall(contest, moved, row, column, claimant, geometry)
        for moved, row, column in turns(contest.down, contest.right, own, stones, geometry.size)
    ]
    can_wait, waited = after_wait(contest, claimant)
    if can_wait:
        after.append(waited)
    return after


def expand(graph: Graph, node: int, claimant: int, geometry: Geometry) -> None:
    """Add the distinct contests after each ply of the player to move."""
    graph.start[node], graph.count[node] = graph.used[_EDGES], 0
    for after in children(contest_at(graph, node), claimant, geometry):
        add_edge(graph, node, node_of(graph, after, claimant, geometry))


def add_edge(graph: Graph, node: int, child: int) -> None:
    """Add a child to the node that is expanded now, unless it has it."""
    if graph.parent[child] == node:
        return
    graph.parent[child] = node
    graph.edges[graph.used[_EDGES]] = child
    graph.count[node] += 1
    graph.used[_EDGES] += 1


def set_target(graph: Graph, node: int, target: int) -> None:
    """Give a node numbers for a target: known from its bounds, else a guess by its lag."""
    if graph.low[node] >= target:
        graph.proof[node], graph.disproof[node] = 0, NEVER
    elif graph.high[node] < target:
        graph.proof[node], graph.disproof[node] = NEVER, 0
    elif graph.target[node] != target:
        graph.proof[node], graph.disproof[node] = first_numbers(graph.expected[node], target)
    graph.target[node] = target


def update(graph: Graph, node: int, claimant: int, target: int) -> tuple[int, int, int]:
    """Renew a node's numbers by its children's.

    Returns:
      The child to search next, the number of the second best one, and the sum of the others.
    """
    is_own = contest_at(graph, node).player == claimant
    best, second, total, chosen = NEVER, NEVER, 0, -1
    for edge in range(graph.start[node], graph.start[node] + graph.count[node]):
        child = graph.edges[edge]
        set_target(graph, child, target)
        if is_own:
            number, other = graph.proof[child], graph.disproof[child]
        else:
            number, other = graph.disproof[child], graph.proof[child]
        total += other
        if number < best or chosen < 0:
            best, second, chosen = number, best, child
        elif number < second:
            second = number
    total = min(total, NEVER)
    graph.proof[node], graph.disproof[node] = (best, total) if is_own else (total, best)
    graph.target[node] = target
    if not graph.proof[node]:
        graph.low[node] = max(graph.low[node], target)
    elif not graph.disproof[node]:
        graph.high[node] = min(graph.high[node], target - 1)
    return chosen, second, total


def search(
    graph: Graph,
    root: int,
    claimant: int,
    target: int,
    stop: int,
    stack: Any,
    geometry: Geometry,
) -> None:
    """Search below a node until its claim is decided, or until this many edges are used.

    Args:
      graph: of the claimant; its nodes' bounds become tighter.
      root: node of a contest that is not over.
      claimant: the player who claims at least the target.
      target: a score.
      stop: number of edges.
      stack: three columns of `MAX_PLIES` integers: node, and limits of its two numbers.
      geometry: of the rules.
    """
    nodes, most_proof, most_disproof = stack
    set_target(graph, root, target)
    depth = 0
    nodes[0], most_proof[0], most_disproof[0] = root, NEVER, NEVER
    while depth >= 0 and graph.used[_EDGES] < stop:
        node = nodes[depth]
        set_target(graph, node, target)
        proof, disproof = graph.proof[node], graph.disproof[node]
        if not proof or not disproof:
            depth -= 1
            continue
        if graph.start[node] < 0:
            expand(graph, node, claimant, geometry)
        child, second, total = update(graph, node, claimant, target)
        proof, disproof = graph.proof[node], graph.disproof[node]
        is_over = not proof or not disproof
        if is_over or proof >= most_proof[depth] or disproof >= most_disproof[depth]:
            depth -= 1
            continue
        if depth + 1 >= MAX_PLIES:
            return
        limit = second + second // 4 + 1
        is_own = contest_at(graph, node).player == claimant
        if is_own:
            rest = most_disproof[depth] - total + graph.disproof[child]
            most_proof[depth + 1] = min(most_proof[depth], limit)
            most_disproof[depth + 1] = min(rest, NEVER)
        else:
            rest = most_proof[depth] - total + graph.proof[child]
            most_disproof[depth + 1] = min(most_disproof[depth], limit)
            most_proof[depth + 1] = min(rest, NEVER)
        depth += 1
        nodes[depth] = child
