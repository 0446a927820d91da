"""What a few subscriptions have beside their floor: acknowledgements ahead of a gap, attempts, the last digest.

    floor 40, acknowledged 42 and 43, sequence 41 tried twice

    {"done": [[42, 43]], "attempts": {"41": 2}, "digest": 1700000000.0}

One row of the table `leftovers` for each; a subscription that has nothing of the kind has none.
"""

import json

from server.log.sequence_ranges import SequenceRanges

__all__ = ["Leftovers"]


class Leftovers:
    """The exceptional state of one subscription."""

    __slots__ = ("attempts", "digest_time", "done")

    def __init__(self) -> None:
        self.done = SequenceRanges()
        self.attempts: dict[int, int] = {}
        self.digest_time = 0.0

    def __bool__(self) -> bool:
        return bool(self.done or self.attempts or self.digest_time)

    def advance(self, floor: int) -> int:
        """Forget what the floor has passed; where the floor gets to."""
        floor = self.done.advance(floor)
        if self.attempts:
            self.attempts = {sequence: count for sequence, count in self.attempts.items() if sequence > floor}
        return floor

    def forget_deliveries(self) -> None:
        """All but the time of the last digest."""
        self.done = SequenceRanges()
        self.attempts = {}

    def to_text(self) -> str:
        state = {"done": self.done.pairs(), "attempts": self.attempts, "digest": self.digest_time}
        return json.dumps({name: value for name, value in state.items() if value})

    @classmethod
    def from_text(cls, text: str) -> "Leftovers":
        """
        >>> Leftovers.from_text('{"attempts": {"41": 2}}').attempts
        {41: 2}
        """
        state = json.loads(text)
        leftovers = cls()
        leftovers.done = SequenceRanges((first, last) for first, last in state.get("done", []))
        leftovers.attempts = {int(sequence): count for sequence, count in state.get("attempts", {}).items()}
        leftovers.digest_time = state.get("digest", 0.0)
        return leftovers
