"""What the documents of the workload look like: a schema of a news dispatch, written for this benchmark.

    table   frame width            : caption? column* row+ total? note?
    row     line                   : (cell|head)+
    ▲       ▲                        ▲
    name    its own attributes     its content: names or choices, each with ? * + or nothing

`#` stands for text, `@inline` and `@block` for the names of a mixture. Blocks, lists, quotations and tables
contain each other without end, as they do in real document types: this is what makes `//` meet an element on
many levels. Every element also has the attributes of `COMMON`. The shape follows public news formats (about
120 names, a third of them leaves, six attributes each, one small leaf that many elements share); the text is
our own.
"""

import re
from dataclasses import dataclass

__all__ = ["DISPATCH", "MANY", "TEXT", "Element", "Particle", "Schema", "read_schema"]

MANY = 1 << 30
"""The upper bound of `*` and `+`; whoever generates a document chooses a real one."""

TEXT = "#"
COMMON = ("id", "class", "lang", "stamp")
OCCURRENCES = {"": (1, 1), "?": (0, 1), "*": (0, MANY), "+": (1, MANY)}


@dataclass(frozen=True)
class Particle:
    """One place in a content model: any of `names`, at least `least` and at most `most` times."""

    names: tuple[str, ...]
    least: int
    most: int


@dataclass(frozen=True)
class Element:
    name: str
    attributes: tuple[str, ...]
    content: tuple[Particle, ...]
    children: tuple[str, ...]


@dataclass(frozen=True)
class Schema:
    root: str
    elements: dict[str, Element]


def read_schema(text: str, mixtures: dict[str, str]) -> Schema:
    """The schema that `text` describes; the first element is the root.

    >>> schema = read_schema("memo to : (line|@odd)* \\n line : #* \\n rule :", {"@odd": "rule"})
    >>> schema.root, schema.elements["memo"].attributes, schema.elements["memo"].children
    ('memo', ('id', 'class', 'lang', 'stamp', 'to'), ('line', 'rule'))
    """
    for mixture, names in mixtures.items():
        text = text.replace(mixture, "|".join(names.split()))
    elements = [_read_element(line) for line in text.splitlines() if line.strip()]
    schema = Schema(elements[0].name, {element.name: element for element in elements})
    _check(schema, len(elements))
    return schema


def _read_element(line: str) -> Element:
    head, _, model = line.partition(":")
    name, *own = head.split()
    content = tuple(_read_particle(token) for token in model.split())
    children = dict.fromkeys(child for particle in content for child in particle.names if child != TEXT)
    return Element(name, (*COMMON, *own), content, tuple(children))


def _read_particle(token: str) -> Particle:
    found = re.fullmatch(r"\(?([^()?*+]+)\)?([?*+]?)", token)
    if found is None:
        raise ValueError(f"expected a name or (a|b), then ?, * or +, and found {token!r}")
    return Particle(tuple(found[1].split("|")), *OCCURRENCES[found[2]])


def _check(schema: Schema, n_lines: int) -> None:
    named = {child for element in schema.elements.values() for child in element.children}
    missing = named - set(schema.elements)
    if missing or n_lines != len(schema.elements):
        raise ValueError(f"each element needs one line; without one: {sorted(missing)}")


MIXTURES = {
    "@inline": "emphasis strong link person place firm event product money amount date clock phrase footnote"
    " acronym formula term break score weather",
    "@block": "para list quote table figure aside listing rule poem glossary note interview clip map chart",
    "@filing": "identity deadline expiry genre audience region series amends mood",
}

DISPATCH = read_schema(
    """
    dispatch    version serial stage digest          : header story+
    header      profile revision                     : title? keyword* envelope rights? origin* history*
    title       form size                            : #
    keyword     scheme weight rank                   :
    envelope    urgency routing embargo              : (@filing)*
    identity    system check issuer serial           :
    deadline    zone moment grace                    :
    expiry      zone moment                          :
    genre       scheme level                         : code*
    audience    scheme share age                     : code?
    region      scheme scope                         : code* place?
    series      part total label                     :
    amends      target reason moment                 : note?
    mood        scale author                         :
    rights      holder term territory                : owner* agent* limit*
    owner       since share                          : contact?
    agent       since role                           : contact?
    limit       until scope medium                   :
    contact     phone mail desk hours                :
    origin      station desk feed wire               : code?
    history     author moment action                 :
    story       tone length language                 : front main back?
    front       layout                               : kicker? heading dateline? credit* abstract? promise?
    kicker      style                                : (#|@inline)*
    heading     rank                                 : banner deck*
    banner      style width                          : (#|@inline)*
    deck        style order                          : (#|@inline)*
    dateline    zone                                 : place? date? desk?
    desk        city shift                           : #
    credit      role order                           : (#|person|firm|desk)*
    abstract    length author                        : (@block)+
    promise     page moment                          : (#|@inline)*
    main        columns                              : (section|@block)+
    section     rank label                           : heading? (section|@block)+
    back        layout                               : (signature|reference|sponsor|errata|related)*
    signature   form moment                          : (#|person)*
    reference   target medium pages                  : #
    sponsor     since share                          : firm?
    errata      moment issue                         : amends*
    related     kind                                 : (#|link)*
    para        lead indent                          : (#|@inline)*
    list        style start                          : entry+
    entry       value mark                           : (@block)+
    quote       source stance                        : (@block)* voice?
    voice       role                                 : (#|@inline)*
    table       frame width                          : caption? column* row+ total? note?
    caption     side                                 : (#|@inline)*
    column      width align span                     :
    row         line height                          : (cell|head)+
    cell        align span axis                      : (#|@block|@inline)*
    total       line                                 : cell*
    head        align span scope                     : (#|@inline)*
    figure      width height side                    : image+ caption? maker?
    image       source width height format depth     :
    maker       role since                           : (#|person)*
    aside       side kind                            : heading? (@block)*
    listing     syntax start                         : #*
    rule        width style                          :
    poem        meter                                : stanza+ voice?
    stanza      order                                : verse+
    verse       order indent                         : (#|@inline)*
    glossary    order                                : (item|meaning)+
    item        rank                                 : (#|@inline)*
    meaning     rank source                          : (@block)*
    note        kind mark                            : (#|@block|@inline)*
    interview   medium                               : (question|answer)+
    question    by order                             : (#|@inline)*
    answer      by order                             : (@block)*
    clip        format length source                 : frame* sound? caption? script?
    frame       moment width height                  :
    sound       rate channels format                 :
    script      author                               : (#|voice)*
    map         scale projection                     : layer* legend?
    layer       depth kind                           : point*
    point       north east height                    : tag?
    tag         side colour                          :
    legend      side                                 : (#|@inline)*
    chart       kind scale                           : axis* plot* legend?
    axis        unit least most                      :
    plot        colour mark width                    : datum*
    datum       step height                          :
    emphasis    style                                : (#|@inline)*
    strong      style                                : (#|@inline)*
    link        target medium label                  : (#|@inline)*
    phrase      source form                          : (#|@inline)*
    person      gender born source                   : (#|given|family|honour|post|alias|code)*
    given       order                                : #
    family      order birth                          : #
    alias       since                                : #
    honour      rank since                           : #
    post        since until                          : #? code*
    place       kind source                          : (#|street|district|city|province|country|venue|code)*
    street      number side                          : #
    district    number                               : #? code*
    city        size zone                            : #? code*
    province    kind                                 : #? code*
    country     currency zone                        : #? code*
    venue       seats kind                           : #? code*
    firm        sector source                        : (#|ticker|branch|officer|code)*
    ticker      market currency                      : #
    branch      city since                           : #? code*
    officer     post since                           : #
    event       start finish source                  : #? code*
    product     maker model                          : #? code*
    money       currency moment unit                 : #
    amount      unit precision                       : (#|fraction|exponent)*
    fraction    over                                 : #
    exponent    base                                 : #
    date        calendar precision                   : #
    clock       zone precision                       : #
    footnote    mark target                          : (#|@inline)*
    acronym     long language                        : #
    formula     syntax unit                          : #? fraction* exponent*
    term        source language                      : #? code*
    break       clear                                :
    score       sport home away                      :
    weather     wind rain heat                       : code?
    code        scheme value source                  :
    """,
    MIXTURES,
)
