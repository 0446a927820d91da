"""What a cluster has to have done, found out from a history of what was seen outside: one event after the other.

    create, update, delete    `begun` and `done`: in between a subscription may have either filter, or none
    publish                   `begun` and `done`, `ok` or not: in between the document met the subscriptions
    delivery                  a subscription got a document, under a sequence number
    token                     somebody saw that a token has an owner under a generation
    settled                   whoever runs it says that all has arrived that ever will
    calm, outage              `begun` and `done`: nothing may move in between

    versions of s   ────────│ v1 possible │ v1 certain │ v1 or v2 │ v2 certain │ v2 or none │────
                         create         done         update     done         delete       done
    document                                 │ begun ────────── done │     s may have met it as v1 or as v2

Must hold, whatever was broken meanwhile:

    complete     a document that was accepted has met each subscription that had to want it, in every version that it
                 may have met, and has been delivered to it before the next `settled`
    exact        what is delivered was wanted by a version that the document may have met
    one each     a sequence number always means the same document, and a document has one sequence number
    gap-free     at `settled` the sequence numbers of a subscription are 1, 2, 3, ... to the last
    fenced       generations of a token only grow, and each has one owner
    at rest      in a calm, and in an outage of ZooKeeper, no token gets another generation

Of a subscription that was deleted what was on its way need not have arrived, but its place is kept: no more may be
missing than there are holes in its sequence numbers. A document of which an attempt was given up, its fate unknown, may
arrive at any time.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from server.documents import Document
from server.subscriptions import Filter
from tests.server_oracle import wants

__all__ = ["Judge", "judged"]

Event = Mapping[str, Any]
NEVER = 1 << 62


@dataclass
class Version:
    """A filter, or none (deleted), from when it may have been the one, and since when it is for certain."""

    filter: Filter | None
    begun: int
    done: int = NEVER


@dataclass
class Subscription:
    """Its versions; the first is that it is not there yet."""

    versions: list[Version] = field(default_factory=lambda: [Version(None, 0, 0)])
    owed: set[str] = field(default_factory=set)
    owed_before: set[str] = field(default_factory=set)
    documents: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    sequences: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    @property
    def is_leaving(self) -> bool:
        """Whether it may have been deleted."""
        return len(self.versions) > 1 and self.versions[-1].filter is None

    def between(self, start: int, end: int) -> Iterator[Filter | None]:
        """The filters that it may have had at any time from start to end."""
        followers = [version.done for version in self.versions[1:]] + [NEVER]
        for version, replaced in zip(self.versions, followers, strict=True):
            if version.begun <= end and replaced >= start:
                yield version.filter

    def holes(self) -> list[int]:
        return sorted(set(range(1, max(self.documents, default=0) + 1)) - self.documents.keys())


@dataclass
class Publication:
    """A document, and what became of the attempts to publish it."""

    document: Document
    begun: int
    accepted: int | None = None
    last_done: int = 0
    n_attempts: int = 0
    is_open: int = 0
    is_uncertain: bool = False

    @property
    def until(self) -> int:
        """When it may have met subscriptions for the last time."""
        return NEVER if self.is_open or self.is_uncertain else self.last_done


@dataclass
class Judge:
    """Takes events in the order in which they happened. `faults` are in words."""

    faults: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    n_owed: int = 0
    _clock: int = 0
    _subscriptions: dict[str, Subscription] = field(default_factory=lambda: defaultdict(Subscription))
    _publications: dict[str, Publication] = field(default_factory=dict)
    _generations: dict[tuple[str, str, int], int] = field(default_factory=dict)
    _owners: dict[tuple[str, int, int], str] = field(default_factory=dict)
    _quiet: set[str] = field(default_factory=set)
    _answers: dict[tuple[Filter, bytes, str], bool] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """One more event."""
        self._clock += 1
        what = event["what"]
        self.counts[what if "state" not in event else f"{what} {event['state']}"] += 1
        match what, event.get("state"):
            case "create" | "update" | "delete", state:
                self._change(event["subscription"], state == "begun", event.get("filter"))
            case "publish", "begun":
                self._published(event)
            case "publish", _:
                self._publish_done(event)
            case "delivery", _:
                self._delivered(event["subscription"], event["sequence"], event["document"])
            case "token", _:
                self._token(event)
            case "settled", _:
                self._settle()
            case "calm" | "outage", state:
                (self._quiet.add if state == "begun" else self._quiet.discard)(what)

    def may_be_deleted(self, name: str) -> bool:
        return self._subscriptions[name].is_leaving

    # -- subscriptions -----------------------------------------------------------------------------

    def _change(self, name: str, is_begun: bool, filter: Any) -> None:
        subscription = self._subscriptions[name]
        if not is_begun:
            subscription.versions[-1].done = self._clock
            return
        subscription.versions.append(Version(Filter(*filter) if filter else None, self._clock))
        if filter is None:
            self.n_owed -= len(subscription.owed)
            subscription.owed_before, subscription.owed = subscription.owed, set()

    # -- documents ---------------------------------------------------------------------------------

    def _published(self, event: Event) -> None:
        document_id = event["document"]
        if document_id not in self._publications:
            document = Document(document_id, xml=event["xml"].encode(), attributes=event["attributes"])
            self._publications[document_id] = Publication(document, self._clock)
        self._publications[document_id].is_open += 1
        self._publications[document_id].n_attempts += 1

    def _publish_done(self, event: Event) -> None:
        publication = self._publications[event["document"]]
        publication.is_open -= 1
        publication.last_done = self._clock
        if event.get("duplicate"):
            self.counts["repetitions"] += 1
            if publication.n_attempts == 1:
                self.faults.append(f"{event['document']} was sent once, and was taken for a repetition")
        if not event["ok"]:
            publication.is_uncertain = True
        elif publication.accepted is None:
            publication.accepted = self._clock
            self.counts["accepted"] += 1
            for subscription in self._subscriptions.values():
                self._owe(subscription, publication)

    def _owe(self, subscription: Subscription, publication: Publication) -> None:
        """Note that it has to arrive, if it has to whatever version it has met."""
        document = publication.document
        if document.id in subscription.sequences:
            return
        possible = subscription.between(publication.begun, self._clock)
        if all(filter is not None and self._wants(filter, document) for filter in possible):
            subscription.owed.add(document.id)
            self.n_owed += 1

    def _wants(self, filter: Filter, document: Document) -> bool:
        """The oracle's answer, which is asked once for documents that are alike."""
        key = filter, document.xml, json.dumps(dict(document.attributes))  # type: ignore[arg-type]
        if key not in self._answers:
            self._answers[key] = wants(filter, document)
        return self._answers[key]

    # -- deliveries --------------------------------------------------------------------------------

    def _delivered(self, name: str, sequence: int, document_id: str) -> None:
        if name not in self._subscriptions:
            self.faults.append(f"{name}, which was never made, got {document_id}")
            return
        subscription = self._subscriptions[name]
        if document_id in subscription.owed:
            subscription.owed.discard(document_id)
            self.n_owed -= 1
        subscription.owed_before.discard(document_id)
        subscription.documents[sequence].add(document_id)
        is_known = document_id in subscription.sequences
        subscription.sequences[document_id].add(sequence)
        self._check_one_each(name, subscription, sequence, document_id)
        if not is_known:
            self.counts["delivered"] += 1
            self._check_exact(name, subscription, document_id)

    def _check_one_each(self, name: str, subscription: Subscription, sequence: int, document_id: str) -> None:
        if len(documents := subscription.documents[sequence]) > 1:
            self.faults.append(f"{name} got different documents under {sequence}: {sorted(documents)}")
        if len(sequences := subscription.sequences[document_id]) > 1:
            self.faults.append(f"{name} got {document_id} under several sequence numbers: {sorted(sequences)}")

    def _check_exact(self, name: str, subscription: Subscription, document_id: str) -> None:
        publication = self._publications.get(document_id)
        if publication is None:
            self.faults.append(f"{name} got {document_id}, which was never sent")
            return
        possible = subscription.between(publication.begun, min(publication.until, self._clock))
        if not any(filter is not None and self._wants(filter, publication.document) for filter in possible):
            self.faults.append(f"{name} got {document_id}, which it did not want in any version that it may have met")

    # -- at certain times --------------------------------------------------------------------------

    def _settle(self) -> None:
        for name, subscription in sorted(self._subscriptions.items()):
            self.faults += self._unsettled(name, subscription)
            self.n_owed -= len(subscription.owed)
            subscription.owed, subscription.owed_before = set(), set()

    def _unsettled(self, name: str, subscription: Subscription) -> Iterator[str]:
        holes = subscription.holes()
        if subscription.is_leaving:
            newest = self._newest(subscription)
            lost = [one for one in subscription.owed_before if (self._publications[one].accepted or NEVER) < newest]
            if len(lost) > len(holes):
                yield f"{name}, now deleted, never got {sorted(lost)}, and has only {len(holes)} holes for them"
            return
        if subscription.owed:
            yield f"{name} never got {sorted(subscription.owed)}, which it wanted and which were accepted"
        if holes:
            yield f"{name} has gaps in its sequence numbers: {holes[:10]}"

    def _newest(self, subscription: Subscription) -> int:
        """The latest time at which a document was sent that it got: what was accepted before that has its place."""
        return max(
            (self._publications[one].begun for one in subscription.sequences if one in self._publications), default=0
        )

    # -- tokens ------------------------------------------------------------------------------------

    def _token(self, event: Event) -> None:
        kind, token, generation, owner = event["kind"], event["token"], event["generation"], event["owner"]
        title = f"{kind} token {token}"
        before = self._generations.get((event["seen_in"], kind, token))
        self._generations[event["seen_in"], kind, token] = generation
        if before is not None and generation < before:
            self.faults.append(f"{title} went from generation {before} back to {generation} in {event['seen_in']}")
        first = self._owners.setdefault((kind, token, generation), owner)
        if first != owner:
            self.faults.append(f"{title} has two owners in generation {generation}: {first} and {owner}")
        if before is not None and generation != before:
            self.counts["moves"] += 1
            for quiet in sorted(self._quiet):
                self.faults.append(f"{title} went to {owner} in generation {generation} during {quiet}")


def judged(lines: Iterable[str]) -> Judge:
    """The judgement of a history, as it was written down."""
    judge = Judge()
    for line in lines:
        judge.take(json.loads(line))
    return judge
