"""A BE-Tree that grows and shrinks: two-phase space cutting, one conjunction at a time.

    root ── bucket: what no partition takes
     ├─ partition price ── top [1, 40] ── bucket: straddles 20 | 21
     │                       ├─ left  [1, 20] ── bucket: straddles 10 | 11
     │                       └─ right [21, 40] ── bucket
     │                            └─ partition qty ── top [1, 9] ── bucket …
     └─ partition day ── …

A bucket that overflows is cut: first its node's range of codes is halved (space clustering), and what lies within one
half goes there; if that does not help, the conjunctions are told apart by a further attribute (space partitioning). A
bucket that cannot be cut grows its limit. A leaf that a removal leaves with too few is dissolved, and what was in it
goes into the tree again from its parent on. So, whenever nothing waits to be cut:

    a conjunction lies in one bucket, within the codes of all nodes above it
    it fits no half of its node, and has no attribute that its node is partitioned by
    no bucket is over its limit, and no leaf but the root has fewer than MIN_SIZE

After M. Sadoghi and H.-A. Jacobsen, BE-Tree, SIGMOD 2011. A p-node and the topmost c-node of its cluster directory
come and go together, so one node is both: the attribute and a range of its codes.

Which attribute? The paper ranks attributes by what they save less what they cost. Here each conjunction votes for
the attribute that is cheapest for it: how likely an event is to meet its codes there, plus its share of the visits to
a new node. All attributes that save at least half of what the best one saves become partitions in one round, so that
a bucket of a million is cut in a few rounds, and one that is a little too full loses only its largest groups.
"""

from typing import NamedTuple

import numpy as np

from boolmatch.conjunctions import Conjunctions
from boolmatch.selectivity import Profile
from boolmatch.spaces import ABSENT, ATTRIBUTE_MASK, OTHER_CODE
from sievecore.hashing import SEED, mix, new_slots
from sievecore.jit import kernel
from sievecore.tables import columns

__all__ = ["MIN_SIZE", "NONE", "ROOT", "BETree"]

NONE = -1
ROOT = 0
NOT_QUEUED = -2

MIN_SIZE = 3
MAX_DEPTH = 100
VISIT = 4.0  # what it costs to visit a node, in candidates looked at
FIRST_ROOM = 64

NODE = columns(
    "parent",
    "attribute",
    "low",
    "high",
    "depth",
    "left",
    "right",
    "partitions",  # the first top node of the directory
    "next",  # the next top node of the parent's directory
    "previous",
    "bucket",  # the first conjunction
    "size",
    "limit",
    "queued",  # the next node that waits to be cut
)

N_NODES, FREE, QUEUE, MAX_SIZE = range(4)  # cells of `Growth.state`


class Growth(NamedTuple):
    """The arrays of a tree; those of nodes are replaced by longer ones as it grows."""

    state: np.ndarray
    nodes: np.ndarray
    slots: np.ndarray  # a hash table from (node, attribute) to a top node
    home: np.ndarray  # of a conjunction: its node
    next: np.ndarray  # the conjunction after it in the bucket
    previous: np.ndarray
    used: np.ndarray  # of an attribute: whether the node at hand is below a partition by it; zero between cuts
    popularity: np.ndarray  # how many conjunctions of a bucket have it; zero between cuts
    votes: np.ndarray
    touched: np.ndarray  # the attributes whose cells of these are not zero
    savings: np.ndarray


class BETree:
    """A tree over some of the conjunctions of a table, which are named by their numbers."""

    def __init__(self, table: Conjunctions, profile: Profile, max_size: int) -> None:
        self.table, self.profile = table, profile
        n_conjunctions, n_attributes = table.n_conjunctions, len(profile.n_codes)
        self.growth = Growth(
            state=np.array([0, NONE, NONE, max_size]),
            nodes=np.zeros(FIRST_ROOM, NODE),
            slots=new_slots(FIRST_ROOM),
            home=np.full(n_conjunctions, NONE, np.int32),
            next=np.full(n_conjunctions, NONE, np.int32),
            previous=np.full(n_conjunctions, NONE, np.int32),
            used=np.zeros(n_attributes, np.int32),
            popularity=np.zeros(n_attributes, np.int32),
            votes=np.zeros(n_attributes, np.int32),
            touched=np.zeros(n_attributes, np.int32),
            savings=np.zeros(n_attributes, np.float64),
        )
        _new_node(self.growth, NONE, NONE, 0, 0)

    @classmethod
    def of_all(cls, table: Conjunctions, profile: Profile, max_size: int) -> "BETree":
        """The tree of a whole table: everything into the root's bucket, and then that is cut."""
        tree = cls(table, profile, max_size)
        _fill_root(tree.growth)
        tree._settle()
        return tree

    def insert(self, conjunction: int) -> None:
        _insert(self.growth, self.table, self.profile, ROOT, conjunction)
        self._settle()

    def delete(self, conjunction: int) -> None:
        _delete(self.growth, self.table, self.profile, conjunction)
        self._settle()

    def _settle(self) -> None:
        while not _cut_all(self.growth, self.table, self.profile):
            self._make_room()

    def _make_room(self) -> None:
        nodes = np.zeros(2 * len(self.growth.nodes) + len(self.profile.n_codes), NODE)
        nodes[: len(self.growth.nodes)] = self.growth.nodes
        self.growth = self.growth._replace(nodes=nodes, slots=new_slots(len(nodes)))
        _enter_partitions(self.growth, ROOT)

    def buckets(self) -> dict[int, list[int]]:
        """The conjunctions in each node that is in the tree."""
        found, waiting = {}, [ROOT]
        while waiting:
            node = waiting.pop()
            found[node] = _chain(self.growth.next, self.growth.nodes[node]["bucket"])
            waiting += self.children(node)
        return found

    def children(self, node: int) -> list[int]:
        nodes = self.growth.nodes
        halves = [int(half) for half in (nodes[node]["left"], nodes[node]["right"]) if half != NONE]
        return halves + _chain(nodes["next"], nodes[node]["partitions"])

    def _check(self) -> None:
        """Assert what the module promises."""
        nodes, buckets = self.growth.nodes, self.buckets()
        homes = {conjunction: node for node, bucket in buckets.items() for conjunction in bucket}
        assert sum(map(len, buckets.values())) == len(homes), "a conjunction is in one bucket"
        assert homes == {int(i): int(self.growth.home[i]) for i in np.flatnonzero(self.growth.home != NONE)}
        for node, bucket in buckets.items():
            assert len(bucket) == nodes[node]["size"] <= nodes[node]["limit"], "no bucket is over its limit"
            assert node == ROOT or self.children(node) or len(bucket) >= MIN_SIZE, "no leaf has too few"
            for conjunction in bucket:
                self._check_place(node, conjunction)

    def _check_place(self, node: int, conjunction: int) -> None:
        nodes, path = self.growth.nodes, [node]
        while path[-1] != ROOT:
            path.append(int(nodes[path[-1]]["parent"]))
        for above in path[:-1]:
            low, high = _codes(self.table, conjunction, nodes[above]["attribute"])
            within = nodes[above]["low"] <= low and high <= nodes[above]["high"]
            assert within or low > high, "it lies within all nodes above it, or never holds"
        assert _fitting_half(self.growth, self.table, node, conjunction) == NONE, "it fits no half of its node"
        on_path = {int(nodes[above]["attribute"]) for above in path}
        directory = {int(nodes[child]["attribute"]) for child in self.children(node)} - on_path
        predicates = self.table.predicates[self.table.start[conjunction] : self.table.start[conjunction + 1]]
        indexable = set((predicates["attribute"][predicates["high"] != ABSENT] & ATTRIBUTE_MASK).tolist())
        assert not indexable & directory, "no partition of its node would take it"


def _chain(following: np.ndarray, first: int) -> list[int]:
    found = []
    while first != NONE:
        found.append(int(first))
        first = following[first]
    return found


# Nodes and their directories


@kernel
def _new_node(growth, parent, attribute, low, high):
    """Take a node from those that are free; there must be one."""
    state, nodes = growth.state, growth.nodes
    number = state[FREE]
    if number == NONE:
        number = state[N_NODES]
        state[N_NODES] += 1
    else:
        state[FREE] = nodes[number].next
    node = nodes[number]
    node.parent, node.attribute, node.low, node.high = parent, attribute, low, high
    node.depth = 0 if parent == NONE else nodes[parent].depth + 1
    node.left = node.right = node.partitions = node.next = node.previous = node.bucket = NONE
    node.size, node.limit, node.queued = 0, state[MAX_SIZE], NOT_QUEUED
    return number


@kernel
def _has_room(growth, n_wanted):
    return growth.state[N_NODES] + n_wanted <= len(growth.nodes)


@kernel
def _slot(growth, parent, attribute):
    """The slot of a top node, or the empty one where it belongs."""
    mask = np.uint64(len(growth.slots) - 1)
    place = mix(mix(SEED, parent), attribute) & mask
    while growth.slots[place] != NONE:
        top = growth.nodes[growth.slots[place]]
        if top.parent == parent and top.attribute == attribute:
            break
        place = (place + np.uint64(1)) & mask
    return place


@kernel
def _new_partition(growth, profile, parent, attribute):
    top = _new_node(growth, parent, attribute, OTHER_CODE, profile.n_codes[attribute] - 1)
    growth.slots[_slot(growth, parent, attribute)] = top
    following = growth.nodes[parent].partitions
    growth.nodes[top].next = following
    if following != NONE:
        growth.nodes[following].previous = top
    growth.nodes[parent].partitions = top


@kernel
def _enter_partitions(growth, node):
    """Fill an empty hash table, walking the tree by its links."""
    while node != NONE:
        if _is_top(growth, node):
            growth.slots[_slot(growth, growth.nodes[node].parent, growth.nodes[node].attribute)] = node
        node = _next_in_tree(growth, node)


@kernel
def _is_top(growth, number):
    parent = growth.nodes[number].parent
    return parent != NONE and growth.nodes[parent].attribute != growth.nodes[number].attribute


@kernel
def _next_in_tree(growth, number):
    """The node after this one in depth-first order: partitions, then the left half, then the right one."""
    nodes = growth.nodes
    if nodes[number].partitions != NONE:
        return nodes[number].partitions
    if nodes[number].left != NONE:
        return nodes[number].left
    if nodes[number].right != NONE:
        return nodes[number].right
    while nodes[number].parent != NONE:
        parent = nodes[number].parent
        if _is_top(growth, number):
            if nodes[number].next != NONE:
                return nodes[number].next
            if nodes[parent].left != NONE:
                return nodes[parent].left
        if nodes[parent].right != NONE and nodes[parent].right != number:
            return nodes[parent].right
        number = parent
    return np.int32(NONE)


@kernel
def _drop_node(growth, number):
    """Give an empty leaf back."""
    nodes = growth.nodes
    parent, before, after = nodes[number].parent, nodes[number].previous, nodes[number].next
    if _is_top(growth, number):
        _empty_slot(growth, _slot(growth, parent, nodes[number].attribute))
        if before == NONE:
            nodes[parent].partitions = after
        else:
            nodes[before].next = after
        if after != NONE:
            nodes[after].previous = before
    elif nodes[parent].left == number:
        nodes[parent].left = NONE
    else:
        nodes[parent].right = NONE
    nodes[number].next = growth.state[FREE]
    growth.state[FREE] = number


@kernel
def _empty_slot(growth, place):
    """Empty a slot, and move up those after it that would no longer be found."""
    slots, mask = growth.slots, np.uint64(len(growth.slots) - 1)
    slots[place] = NONE
    hole, place = place, (place + np.uint64(1)) & mask
    while slots[place] != NONE:
        top = growth.nodes[slots[place]]
        wanted = mix(mix(SEED, top.parent), top.attribute) & mask
        if (place - wanted) & mask >= (place - hole) & mask:
            slots[hole], slots[place] = slots[place], NONE
            hole = place
        place = (place + np.uint64(1)) & mask


# Buckets


@kernel
def _link(growth, number, conjunction):
    node = growth.nodes[number]
    growth.home[conjunction], growth.next[conjunction], growth.previous[conjunction] = number, node.bucket, NONE
    if node.bucket != NONE:
        growth.previous[node.bucket] = conjunction
    node.bucket = conjunction
    node.size += 1


@kernel
def _unlink(growth, conjunction):
    node = growth.nodes[growth.home[conjunction]]
    before, after = growth.previous[conjunction], growth.next[conjunction]
    if before == NONE:
        node.bucket = after
    else:
        growth.next[before] = after
    if after != NONE:
        growth.previous[after] = before
    node.size -= 1
    growth.home[conjunction] = NONE


@kernel
def _queue_if_over(growth, number):
    node = growth.nodes[number]
    if node.size > node.limit and node.queued == NOT_QUEUED:
        node.queued = growth.state[QUEUE]
        growth.state[QUEUE] = number


# Where a conjunction belongs


@kernel
def _codes(table, conjunction, attribute):
    """The codes at which a conjunction's predicates about an attribute all meet; (0, -1) if it has none.

    One that does not meet those before it is left out: only an event with several values can satisfy both.
    """
    low, high = 0, -1
    for position in range(table.start[conjunction], table.start[conjunction + 1]):
        predicate = table.predicates[position]
        if predicate.attribute & ATTRIBUTE_MASK == attribute and predicate.high != ABSENT:
            if high < 0:
                low, high = predicate.low, predicate.high
            elif predicate.low <= high and predicate.high >= low:
                low, high = max(low, predicate.low), min(high, predicate.high)
    return low, high


@kernel
def _side(growth, table, number, conjunction):
    """-1 or 1 if a conjunction lies within the left or right half of its node's codes, 0 if it straddles."""
    node = growth.nodes[number]
    if node.attribute == NONE or node.low == node.high:
        return 0
    low, high = _codes(table, conjunction, node.attribute)
    middle = (node.low + node.high) >> 1
    return -1 if high <= middle else 1 if low > middle else 0


@kernel
def _fitting_half(growth, table, number, conjunction):
    side = _side(growth, table, number, conjunction)
    node = growth.nodes[number]
    return node.left if side < 0 else node.right if side > 0 else np.int32(NONE)


@kernel
def _likelihood(profile, predicate):
    """How likely an event is to meet a predicate."""
    attribute = predicate.attribute & ATTRIBUTE_MASK
    return profile.weights[attribute] * (np.int64(predicate.high) - predicate.low + 1) / profile.n_codes[attribute]


@kernel
def _best_partition(growth, table, profile, number, conjunction):
    """The top node, in a node's directory, of the attribute that is cheapest for a conjunction."""
    best, lowest = np.int32(NONE), np.inf
    if growth.nodes[number].partitions == NONE:
        return best
    for position in range(table.start[conjunction], table.start[conjunction + 1]):
        predicate = table.predicates[position]
        if predicate.high != ABSENT:
            top = growth.slots[_slot(growth, number, predicate.attribute & ATTRIBUTE_MASK)]
            cost = _cost(growth, profile, predicate)
            if top != NONE and cost < lowest:
                best, lowest = top, cost
    return best


@kernel
def _cost(growth, profile, predicate):
    """Likelihood, and a share of visits; between cuts nothing is popular, and the visits are made anyway."""
    attribute = predicate.attribute & ATTRIBUTE_MASK
    popularity = growth.popularity[attribute]
    share = VISIT * profile.weights[attribute] / popularity if popularity > 0 else 0.0
    return _likelihood(profile, predicate) + share


@kernel
def _insert(growth, table, profile, number, conjunction):
    """Put a conjunction where it belongs below a node that it lies within."""
    while True:
        below = _fitting_half(growth, table, number, conjunction)
        if below == NONE:
            below = _best_partition(growth, table, profile, number, conjunction)
        if below == NONE:
            break
        number = below
    _link(growth, number, conjunction)
    _queue_if_over(growth, number)


@kernel
def _fill_root(growth):
    for conjunction in range(len(growth.home) - 1, -1, -1):
        _link(growth, ROOT, conjunction)
    _queue_if_over(growth, ROOT)


@kernel
def _delete(growth, table, profile, conjunction):
    """Take a conjunction out, and dissolve leaves that have become too small."""
    number = growth.home[conjunction]
    _unlink(growth, conjunction)
    node = growth.nodes[number]
    if node.size < node.limit // 4:
        node.limit = max(growth.state[MAX_SIZE], node.limit // 2)
    while number != ROOT and _is_small_leaf(growth, number):
        parent, moving = growth.nodes[number].parent, growth.nodes[number].bucket
        _drop_node(growth, number)
        while moving != NONE:
            following = growth.next[moving]
            _insert(growth, table, profile, parent, moving)
            moving = following
        number = parent


@kernel
def _is_small_leaf(growth, number):
    node = growth.nodes[number]
    return node.left == NONE and node.right == NONE and node.partitions == NONE and node.size < MIN_SIZE


# Cutting


@kernel
def _cut_all(growth, table, profile):
    """Cut what is too full until nothing is, or until there is no room for nodes: then return False."""
    while growth.state[QUEUE] != NONE:
        number = growth.state[QUEUE]
        growth.state[QUEUE] = growth.nodes[number].queued
        growth.nodes[number].queued = NOT_QUEUED
        has_room = _cut(growth, table, profile, number)
        _queue_if_over(growth, number)
        if not has_room:
            return False
    return True


@kernel
def _cut(growth, table, profile, number):
    """One round for one node that is too full; False if there is no room."""
    node = growth.nodes[number]
    if node.depth == MAX_DEPTH:
        node.limit = 2 * node.size
    if node.size <= node.limit:
        return True
    if not _has_room(growth, 2):
        return False
    _halve(growth, table, number)
    return node.size <= node.limit or _partition(growth, table, profile, number)


@kernel
def _halve(growth, table, number):
    """Space clustering: make the halves that enough conjunctions fit, and move those."""
    node = growth.nodes[number]
    n_left = n_right = 0
    conjunction = node.bucket
    while conjunction != NONE:
        side = _side(growth, table, number, conjunction)
        n_left, n_right = n_left + (side < 0), n_right + (side > 0)
        conjunction = growth.next[conjunction]
    middle = (node.low + node.high) >> 1
    if n_left >= MIN_SIZE:
        node.left = _new_node(growth, number, node.attribute, node.low, middle)
    if n_right >= MIN_SIZE:
        node.right = _new_node(growth, number, node.attribute, middle + 1, node.high)
    conjunction = node.bucket
    while conjunction != NONE:
        following = growth.next[conjunction]
        _move(growth, conjunction, _fitting_half(growth, table, number, conjunction))
        conjunction = following


@kernel
def _move(growth, conjunction, number):
    if number != NONE:
        _unlink(growth, conjunction)
        _link(growth, number, conjunction)
        _queue_if_over(growth, number)


@kernel
def _partition(growth, table, profile, number):
    """Space partitioning, one round, or a higher limit if nothing would be gained; False if there is no room."""
    node = growth.nodes[number]
    _mark_used(growth, number, 1)
    n_touched = _count_popularity(growth, table, number)
    _vote(growth, table, profile, number)
    _mark_used(growth, number, 0)
    n_chosen, threshold = _count_chosen(growth, n_touched)
    has_room = _has_room(growth, n_chosen)
    if has_room:
        for i in range(n_touched):
            attribute = growth.touched[i]
            if growth.votes[attribute] >= MIN_SIZE and growth.savings[attribute] >= threshold:
                _new_partition(growth, profile, number, attribute)
        _move_to_partitions(growth, table, profile, number)
    if n_chosen == 0:
        node.limit = 2 * node.size
    for i in range(n_touched):
        attribute = growth.touched[i]
        growth.popularity[attribute] = growth.votes[attribute] = growth.savings[attribute] = 0
    return has_room


@kernel
def _mark_used(growth, number, mark):
    while number != ROOT:
        growth.used[growth.nodes[number].attribute] = mark
        number = growth.nodes[number].parent


@kernel
def _count_popularity(growth, table, number):
    """Count how many of a bucket have each attribute that is not used yet; return how many attributes that are."""
    n_touched = 0
    conjunction = growth.nodes[number].bucket
    while conjunction != NONE:
        for position in range(table.start[conjunction], table.start[conjunction + 1]):
            attribute = table.predicates[position].attribute & ATTRIBUTE_MASK
            if table.predicates[position].high != ABSENT and not growth.used[attribute]:
                if growth.popularity[attribute] == 0:
                    growth.touched[n_touched] = attribute
                    n_touched += 1
                growth.popularity[attribute] += 1
        conjunction = growth.next[conjunction]
    return n_touched


@kernel
def _vote(growth, table, profile, number):
    """Each conjunction of a bucket votes for its cheapest attribute."""
    conjunction = growth.nodes[number].bucket
    while conjunction != NONE:
        choice, lowest = NONE, np.inf
        for position in range(table.start[conjunction], table.start[conjunction + 1]):
            predicate = table.predicates[position]
            if predicate.high != ABSENT and not growth.used[predicate.attribute & ATTRIBUTE_MASK]:
                cost = _cost(growth, profile, predicate)
                if cost < lowest:
                    choice, lowest = predicate.attribute & ATTRIBUTE_MASK, cost
        if choice != NONE:
            growth.votes[choice] += 1
            growth.savings[choice] += max(0.0, 1.0 - lowest)
        conjunction = growth.next[conjunction]


@kernel
def _count_chosen(growth, n_touched):
    """How many attributes have enough votes and save at least half of what the best one saves, and that half."""
    most, n_chosen = 0.0, 0
    for i in range(n_touched):
        if growth.votes[growth.touched[i]] >= MIN_SIZE:
            most = max(most, growth.savings[growth.touched[i]])
    for i in range(n_touched):
        attribute = growth.touched[i]
        n_chosen += growth.votes[attribute] >= MIN_SIZE and growth.savings[attribute] >= most / 2
    return n_chosen, most / 2


@kernel
def _move_to_partitions(growth, table, profile, number):
    conjunction = growth.nodes[number].bucket
    while conjunction != NONE:
        following = growth.next[conjunction]
        _move(growth, conjunction, _best_partition(growth, table, profile, number, conjunction))
        conjunction = following
