"""A first taste: forty thousand subscriptions, a stream of documents, who wants what, why, and how fast.

    python -m xpathfilter.taste

    quotes      <quotes><quote symbol="KOVA" change="1.8"><price>104</price></quote> …</quotes>
    invoices    <invoice currency="CHF"><buyer country="CH"/><line>…</line> … <total>9120</total></invoice>
    news        <news><story section="science"><headline>…</headline><body><keyword>ocean wind</keyword> …

Everything is generated from one seed, so each run shows the same matches; only the times differ. The
comparison is the loop one would write first: every subscription compiled by lxml, every one evaluated on each
document. It runs on a sample, its answers must be those of the index, and its time is scaled to all.
"""

import random
import textwrap
import time
from collections.abc import Sequence
from typing import Any

from lxml import etree

from xpathfilter.index import XPathIndex

__all__ = ["NAMED", "generate_documents", "generate_subscriptions", "loop_over_lxml", "taste"]

SEED = 20
N_SUBSCRIPTIONS, N_DOCUMENTS = 40_000, 3_000
SAMPLING = 20
"""One in so many subscriptions goes through the loop over lxml."""
N_SAMPLED_DOCUMENTS = 40

STARTS, ENDS = (
    ["KO", "AR", "ZE", "MI", "TU", "LO", "PA", "VE", "NO", "DU"],
    ["VA", "NX", "RO", "LL", "DE", "SK"],
)
SYMBOLS = [start + end for start in STARTS for end in ENDS]
CURRENCIES = ["BRL", "CHF", "EUR", "GBP", "INR", "JPY", "SEK", "USD"]
COUNTRIES = ["BR", "CH", "DE", "FR", "GB", "IN", "JP", "PT", "SE", "US"]
SECTIONS = ["business", "culture", "energy", "health", "politics", "science", "sport", "travel"]
KINDS, THINGS = (
    ["city", "island", "ocean", "river", "winter"],
    ["ferries", "football", "music", "strike", "wind"],
)
TOPICS = [f"{kind} {thing}" for kind in KINDS for thing in THINGS]

NAMED = {
    "Ada": "//quote[@symbol = 'KOVA' and price > 150]",
    "Ben": "/invoice[@currency = 'CHF']/total[. >= 9000]",
    "Cleo": "//story[@section = 'science' and not(@embargo)]//keyword[. = 'ocean wind']",
    "Dan": "/quotes and not(//quote[@change >= 0])",
    "Eva": "/invoice[count(line) > 5 and buyer/@country = 'PT']",
}
"""Five of the subscribers, by name."""

REASONS = [("Cleo", False, ">ocean wind<"), ("Dan", True, "<quotes>"), ("Eva", True, "<invoice")]
"""Whose decision to explain: whether it was for or against, and what the document must have."""

WIDTH = 92


def generate_subscriptions(n: int, seed: int = SEED) -> list[str]:
    """`n` subscriptions of the three kinds."""
    chance = random.Random(seed)
    kinds = (_quote_subscription, _invoice_subscription, _news_subscription)
    return [chance.choice(kinds)(chance) for _ in range(n)]


def _quote_subscription(chance: random.Random) -> str:
    symbol, price = chance.choice(SYMBOLS), chance.randint(20, 200)
    return chance.choice(
        [
            f"//quote[@symbol = '{symbol}' and price > {price}]",
            f"/quotes/quote[@symbol = '{symbol}'][price < {price}]",
            f"//quote[@symbol = '{symbol}' and @change > {chance.randint(10, 99) / 10}]/price",
        ]
    )


def _invoice_subscription(chance: random.Random) -> str:
    currency, total = chance.choice(CURRENCIES), chance.randint(5, 99) * 100
    country, year = chance.choice(COUNTRIES), chance.randint(1990, 2024)
    return chance.choice(
        [
            f"/invoice[@currency = '{currency}'][total > {total}]",
            f"/invoice[@currency = '{currency}' and not(paid)]/line/amount[. > {total}]",
            f"/invoice/buyer[@country = '{country}' and @since < {year}]",
        ]
    )


def _news_subscription(chance: random.Random) -> str:
    section, topic, words = chance.choice(SECTIONS), chance.choice(TOPICS), chance.randint(100, 3000)
    return chance.choice(
        [
            f"//story[@section = '{section}' and @words > {words}]//keyword[. = '{topic}']",
            f"/news/story[@section = '{section}']/headline[contains(., '{topic}')]",
            f"//story[@words < {words}]/body//keyword[. = '{topic}']",
        ]
    )


def generate_documents(n: int, seed: int = SEED) -> list[str]:
    """`n` documents of the three kinds."""
    chance = random.Random(-seed)
    kinds = (_quotes, _invoice, _news)
    return [chance.choice(kinds)(chance) for _ in range(n)]


def _quotes(chance: random.Random) -> str:
    trend = chance.uniform(-4, 4)
    symbols = chance.sample(SYMBOLS, chance.randint(2, 8))
    return f"<quotes>{''.join(_quote(chance, symbol, trend) for symbol in symbols)}</quotes>"


def _quote(chance: random.Random, symbol: str, trend: float) -> str:
    change, price = chance.gauss(trend, 3), chance.randint(20, 200)
    return f'<quote symbol="{symbol}" change="{change:.1f}"><price>{price}</price></quote>'


def _invoice(chance: random.Random) -> str:
    amounts = [chance.randint(1, 30) * 100 for _ in range(chance.randint(1, 8))]
    buyer = f'<buyer country="{chance.choice(COUNTRIES)}" since="{chance.randint(1990, 2024)}"/>'
    lines = "".join(f"<line><amount>{amount}</amount></line>" for amount in amounts)
    total = f"<total>{sum(amounts)}</total>{chance.choice(['', '<paid/>'])}"
    return f'<invoice currency="{chance.choice(CURRENCIES)}">{buyer}{lines}{total}</invoice>'


def _news(chance: random.Random) -> str:
    embargo = ' embargo="noon"' if chance.random() < 0.2 else ""
    topics = chance.sample(TOPICS, chance.randint(1, 4))
    body = "".join(f"<p>More on <keyword>{topic}</keyword>.</p>" for topic in topics)
    opening = f'<story section="{chance.choice(SECTIONS)}" words="{chance.randint(100, 3000)}"{embargo}>'
    return f"<news>{opening}<headline>Of {topics[0]}</headline><body>{body}</body></story></news>"


def loop_over_lxml(subscriptions: Sequence[str], documents: Sequence[str]) -> tuple[list[list[int]], float]:
    """The places of the subscriptions that want each document, and the seconds it took to find them."""
    compiled = [etree.XPath(f"boolean({text})") for text in subscriptions]
    started = time.perf_counter()
    roots = map(etree.fromstring, documents)
    wanted = [[place for place, is_wanted in enumerate(compiled) if is_wanted(root)] for root in roots]
    return wanted, time.perf_counter() - started


def taste(n_subscriptions: int = N_SUBSCRIPTIONS, n_documents: int = N_DOCUMENTS) -> None:
    """Show all of it on the terminal."""
    subscriptions = [*NAMED.values(), *generate_subscriptions(n_subscriptions - len(NAMED))]
    documents = generate_documents(n_documents)
    index = XPathIndex()
    ids = _load(index, subscriptions)
    index.match_many(documents[:N_SAMPLED_DOCUMENTS])  # compiled kernels are read from disk, memory is taken
    results, seconds = _stream(index, documents)
    named = dict(zip(NAMED, ids, strict=False))
    _show_interest(named, documents, results)
    _show_reasons(index, named, documents, results)
    _show_speed(subscriptions, documents, ids, results, seconds)


def _load(index: XPathIndex, subscriptions: Sequence[str]) -> list[int]:
    started = time.perf_counter()
    ids: list[int] = index.add_many(subscriptions).tolist()
    seconds, megabytes = time.perf_counter() - started, index.stats()["bytes"] / 1e6
    print(f"Loaded {len(index):,} subscriptions in {seconds:.1f} s. The index takes {megabytes:.1f} MB.")
    return ids


def _stream(index: XPathIndex, documents: Sequence[str]) -> tuple[list[Any], float]:
    started = time.perf_counter()
    results: list[Any] = index.match_many(documents, threads=1)
    seconds = time.perf_counter() - started
    n_bytes = sum(map(len, documents)) / len(documents)
    n_takers = sum(map(len, results)) / len(documents)
    print(f"Streamed {len(documents):,} documents of {n_bytes:.0f} bytes; each has {n_takers:.0f} takers.")
    return results, seconds


def _show_interest(named: dict[str, int], documents: Sequence[str], results: Sequence[Any]) -> None:
    print("\nFive of the subscribers, how many documents each wants, and the first of them:\n")
    for name, subscription_id in named.items():
        wanted = [place for place, found in enumerate(results) if subscription_id in found]
        print(f"  {name:5} {NAMED[name]}")
        print(f"  {len(wanted):5} {_shortened(documents[wanted[0]]) if wanted else ''}\n")


def _shortened(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 2] + " …"


def _show_reasons(index: XPathIndex, named: dict[str, int], documents: Sequence[str], results: Sequence[Any]) -> None:
    print("Why, and why not:\n")
    for name, wants, clue in REASONS:
        for document, found in zip(documents, results, strict=True):
            if clue in document and (named[name] in found) == wants:
                print(f"  {name:5} {_shortened(document)}")
                print(textwrap.indent(str(index.explain(named[name], document)), " " * 8), end="\n\n")
                break


def _show_speed(
    subscriptions: Sequence[str],
    documents: Sequence[str],
    ids: Sequence[int],
    results: Sequence[Any],
    seconds: float,
) -> None:
    sample, sampled_ids = documents[:N_SAMPLED_DOCUMENTS], ids[::SAMPLING]
    wanted, loop_seconds = loop_over_lxml(subscriptions[::SAMPLING], sample)
    expected = [[sampled_ids[place] for place in places] for places in wanted]
    same = expected == [[i for i in sampled_ids if i in found] for found in map(set, results[: len(sample)])]
    index_us = seconds / len(documents) * 1e6
    loop_us = loop_seconds / len(sample) * 1e6 * len(subscriptions) / len(sampled_ids)
    print("How fast, on one thread, parsing included:\n")
    print(f"  PathSieve          {1e6 / index_us:9,.0f} documents/s   {index_us:9,.0f} µs a document")
    print(f"  loop over lxml     {1e6 / loop_us:9,.1f} documents/s   {loop_us:9,.0f} µs a document")
    print(f"  ratio              {loop_us / index_us:9,.0f}")
    print(f"\nThe loop took one subscription in {SAMPLING} and {len(sample)} documents; scaled to all of them.")
    print(f"Its answers were {'the same' if same else 'DIFFERENT: this is a bug, please report it'}.")


if __name__ == "__main__":
    taste()
