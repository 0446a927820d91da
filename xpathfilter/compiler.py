"""From the tree of an expression to a plan: which paths must be found, and do they decide the matter?

    expression                              plan                                            decided by
    //a[@x > 3]/b                           // a[@x > 3] / b                                 the index
    //a/@x = 'v' and not(//c)               // a[@x = 'v']  and not  // c                    the index
    //a[b/c]/following::d                   // a   and   // a / b / c                        lxml, where this holds
    count(//a) > 2                          // a                                             lxml, where this holds
    string-length(/) > 9                    (nothing)                                        lxml, always

Every function here returns a `Plan`: a formula that holds whenever the expression is true, and whether it holds
*only* then. What cannot be said with records is left out of a conjunction, makes a disjunction or a negation
say nothing, and clears `exact`.

For a value made of paths, such as `count(//a) > 2`, one question settles it: is it false when every path is
empty? Then at least one of its paths must find something. libxml2 itself answers, on an empty document, with each
path replaced by one that finds nothing.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import isnan

import numpy as np
from lxml import etree

from xpathfilter.expression import (
    AnyName,
    Binary,
    Call,
    Expression,
    Filter,
    KindTest,
    Literal,
    NameTest,
    Negate,
    NodeTest,
    Number,
    Path,
    Step,
    render,
)
from xpathfilter.functions import ValueType, value_type
from xpathfilter.plan import (
    ANY_NAME,
    FALSE,
    TRUE,
    Combination,
    ElementName,
    LinearPath,
    Operation,
    PathStep,
    Plan,
    Subject,
    ValueTest,
    all_of,
    any_of,
    negation,
)
from xpathfilter.xpath_numbers import parse_number

__all__ = ["compile_expression"]

ANYTHING = Plan(TRUE, exact=False)
COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
TEXT_OPERATIONS = {"=": Operation.EQUAL_TEXT, "!=": Operation.UNEQUAL_TEXT}
NUMBER_OPERATIONS = {
    "=": Operation.EQUAL,
    "!=": Operation.UNEQUAL,
    "<": Operation.LESS,
    "<=": Operation.LESS_EQUAL,
    ">": Operation.GREATER,
    ">=": Operation.GREATER_EQUAL,
}
TEXT_FUNCTIONS = {"contains": Operation.CONTAINS, "starts-with": Operation.STARTS_WITH}
FROM_CONTEXT = frozenset({"string", "number", "string-length", "normalize-space"})  # when they have no argument
FINDS_NOTHING = Path(True, (Step("parent", KindTest("node")),))

Comparison = tuple[Operation, str | float | None]
EXISTS: Comparison = (Operation.EXISTS, None)


def compile_expression(expression: Expression) -> Plan:
    """The plan of a whole expression, whose context is the document node."""
    match expression:
        case Binary("and", left, right):
            return _all([compile_expression(left), compile_expression(right)])
        case Binary("or", left, right):
            return _any([compile_expression(left), compile_expression(right)])
        case Call("not", (argument,)):
            return _not(compile_expression(argument))
        case Call("boolean", (argument,)):
            return compile_expression(argument)
    if value_type(expression) is ValueType.NODE_SET:
        return _compile_nodes(expression, EXISTS)
    if isinstance(expression, Binary) and expression.operator in COMPARISONS:
        found = _nodes_and_constant(expression)
        if found is not None:
            return _compile_nodes(*found)
    return _compile_value(expression)


def _all(plans: list[Plan]) -> Plan:
    return Plan(all_of(plan.formula for plan in plans), all(plan.exact for plan in plans))


def _any(plans: list[Plan]) -> Plan:
    return Plan(any_of(plan.formula for plan in plans), all(plan.exact for plan in plans))


def _not(plan: Plan) -> Plan:
    return Plan(negation(plan.formula), exact=True) if plan.exact else ANYTHING


def _nodes_and_constant(comparison: Binary) -> tuple[Expression, Comparison | None] | None:
    """The node-set side of `nodes op constant`, either way round, and the comparison; None for anything else."""
    for operator, nodes, other in (
        (comparison.operator, comparison.left, comparison.right),
        (MIRRORED.get(comparison.operator, comparison.operator), comparison.right, comparison.left),
    ):
        if value_type(nodes) is ValueType.NODE_SET:
            match other:
                case Literal(value):
                    return nodes, _comparison(operator, value)
                case Number(number):
                    return nodes, _comparison(operator, number)
                case Negate(Number(number)):
                    return nodes, _comparison(operator, -number)
    return None


def _comparison(operator: str, constant: str | float) -> Comparison | None:
    """What to do with each value; None if no value can satisfy it."""
    if isinstance(constant, str):
        if operator in TEXT_OPERATIONS:
            return TEXT_OPERATIONS[operator], constant
        encoded = np.frombuffer(constant.encode() or b" ", np.uint8)
        constant = float(parse_number(encoded, 0, len(encoded)))
    if isnan(constant) and operator != "!=":
        return None
    return NUMBER_OPERATIONS[operator], constant


def _compile_nodes(nodes: Expression, comparison: Comparison | None) -> Plan:
    """The plan for: some node of `nodes` compares so."""
    if comparison is None:
        return Plan(FALSE, exact=True)
    match nodes:
        case Binary("|", left, right):
            return _any([_compile_nodes(left, comparison), _compile_nodes(right, comparison)])
        case Path(_, steps, None):
            return _PathCompiler().compile(steps, comparison)
        case Path(_, _, start) | Filter(start, _) if start is not None:
            return Plan(_compile_nodes(start, EXISTS).formula, exact=False)
    return ANYTHING


def _compile_value(expression: Expression) -> Plan:
    """The plan for a number, a string or a comparison that is not of nodes with a constant."""
    paths = list(_paths(expression))
    if None in paths or _is_true(_without_paths(expression)):
        constant = not paths
        return Plan(TRUE, exact=constant)
    if not paths:
        return Plan(FALSE, exact=True)
    formulas = [_compile_nodes(path, EXISTS).formula for path in paths if path is not None]
    compares_nodes = isinstance(expression, Binary) and paths == [expression.left, expression.right]
    return Plan(all_of(formulas) if compares_nodes else any_of(formulas), exact=False)


def _paths(expression: Expression) -> Iterator[Expression | None]:
    """The node-sets an expression is made of; None for anything else it takes from the document."""
    if value_type(expression) is ValueType.NODE_SET:
        yield expression
        return
    match expression:
        case Call(function, arguments):
            if not arguments and function in FROM_CONTEXT:
                yield None
            for argument in arguments:
                yield from _paths(argument)
        case Binary(_, left, right):
            yield from _paths(left)
            yield from _paths(right)
        case Negate(operand):
            yield from _paths(operand)


def _without_paths(expression: Expression) -> Expression:
    if value_type(expression) is ValueType.NODE_SET:
        return FINDS_NOTHING
    match expression:
        case Call(function, arguments):
            return Call(function, tuple(map(_without_paths, arguments)))
        case Binary(operator, left, right):
            return Binary(operator, _without_paths(left), _without_paths(right))
        case Negate(operand):
            return Negate(_without_paths(operand))
    return expression


def _is_true(expression: Expression) -> bool:
    evaluate = etree.XPath(f"boolean(/self::node()[boolean({render(expression)})])")
    return bool(evaluate(etree.Element("empty")))


class _PathCompiler:
    """Goes along the steps of one path and keeps the linear path so far.

    `branches` are the paths that predicates with paths of their own demand: for //a[b/c] that is //a/b/c.
    """

    def __init__(self, steps: tuple[PathStep, ...] = ()) -> None:
        self.steps = steps
        self.descendant = False  # a // stands before the next step
        self.exact = True
        self.branches: list[Combination] = []

    def compile(self, steps: tuple[Step, ...], comparison: Comparison) -> Plan:
        for number, step in enumerate(steps):
            if step.axis == "self" and step.test == KindTest("node") and not step.predicates:
                continue
            if step == Step("descendant-or-self", KindTest("node")):
                self.descendant = True
                continue
            if step.axis in ("child", "descendant") and not isinstance(step.test, KindTest):
                self._element(step)
                continue
            return self._last(step, comparison, ends=number == len(steps) - 1)
        return self._element_values(comparison)

    def _element(self, step: Step) -> None:
        name = _element_name(step.test)
        descendant = self.descendant or step.axis == "descendant"
        self.steps = (*self.steps, PathStep(descendant, name))
        self.descendant = False
        for predicate in step.predicates:
            self._restrict(self._condition(predicate))

    def _restrict(self, condition: Plan) -> None:
        """Add a condition about the last element."""
        last = self.steps[-1]
        self.steps = (*self.steps[:-1], replace(last, condition=all_of([last.condition, condition.formula])))
        self.exact = self.exact and condition.exact

    def _element_values(self, comparison: Comparison) -> Plan:
        """The path ends in elements (or, after //, in nodes of any kind below them)."""
        if comparison == EXISTS:
            return self._plan(exact=True)
        if self.descendant:
            return self._plan(exact=False)
        if not self.steps:  # The document node has the text of the root element.
            self.steps = (PathStep(False, ANY_NAME),)
        self._restrict(Plan(ValueTest(Subject.SELF, None, *comparison), exact=True))
        return self._plan(exact=True)

    def _last(self, step: Step, comparison: Comparison, ends: bool) -> Plan:
        """The path leaves the elements: for an attribute or a text at its end, or for what no record can say."""
        subject = _subject_of_step(replace(step, predicates=()))
        if subject is None or subject[0] is Subject.SELF:
            return self._plan(exact=False)
        test = ValueTest(*subject, *EXISTS)
        if ends and not step.predicates:
            test = ValueTest(*subject, *comparison)
        elif ends and comparison == EXISTS and len(step.predicates) == 1:
            own = _own_comparison(step.predicates[0])
            if own is not None:
                return self._last(replace(step, predicates=()), own, ends)
            self.exact = False
        else:
            self.exact = False
        return self._with_values(test)

    def _with_values(self, test: ValueTest) -> Plan:
        """The elements so far, or after // also those below them, have an attribute or text that passes."""
        below = _PathCompiler((*self.steps, PathStep(True, ANY_NAME, test)))
        below.branches, below.exact = self.branches, self.exact
        if self.descendant and not self.steps:
            return below._plan(exact=True)
        if not self.steps:
            return Plan(FALSE, exact=True)  # The document node has no attributes and no text of its own.
        descendant, self.descendant = self.descendant, False
        self._restrict(Plan(test, exact=True))
        here = self._plan(exact=True)
        return _any([here, below._plan(exact=True)]) if descendant else here

    def _plan(self, exact: bool) -> Plan:
        if any(step.condition == FALSE for step in self.steps):
            return Plan(FALSE, exact=True)
        path: Combination = LinearPath(self.steps) if self.steps else TRUE
        return Plan(all_of([path, *self.branches]), exact and self.exact)

    def _condition(self, expression: Expression) -> Plan:
        """The plan for a predicate: a condition about the last element."""
        match expression:
            case Binary("and", left, right):
                return _all([self._condition(left), self._condition(right)])
            case Binary("or", left, right):
                return _any([self._nested(left), self._nested(right)])
            case Call("not", (argument,)):
                return _not(self._nested(argument))
            case Call("boolean", (argument,)) if value_type(argument) is not ValueType.NUMBER:
                return self._condition(argument)
            case Call("true", ()):
                return Plan(TRUE, exact=True)
            case Call("false", ()):
                return Plan(FALSE, exact=True)
            case Call(("contains" | "starts-with") as function, (values, Literal(text))):
                subject = _subject(values)
                if text == "":
                    return Plan(TRUE, exact=True)
                if subject is not None:
                    return Plan(ValueTest(*subject, TEXT_FUNCTIONS[function], text), exact=True)
            case Binary(operator, _, _) if operator in COMPARISONS:
                return self._compared(expression)
            case Path():
                return self._has(expression)
        return ANYTHING

    def _nested(self, expression: Expression) -> Plan:
        """A condition inside `or` or `not`: the paths in it are not demanded, so they are left out."""
        branches, self.branches = self.branches, []
        plan = self._condition(expression)
        self.branches = branches
        return plan

    def _has(self, path: Expression) -> Plan:
        subject = _subject(path)
        if subject is None:
            return self._branch(path, EXISTS)
        if subject[0] is Subject.SELF:
            return Plan(TRUE, exact=True)
        return Plan(ValueTest(*subject, *EXISTS), exact=True)

    def _compared(self, comparison: Binary) -> Plan:
        found = _nodes_and_constant(comparison)
        if found is None:
            return ANYTHING
        nodes, compared = found
        if compared is None:
            return Plan(FALSE, exact=True)
        subject = _subject(nodes)
        if subject is not None:
            return Plan(ValueTest(*subject, *compared), exact=True)
        return self._branch(nodes, compared)

    def _branch(self, nodes: Expression, comparison: Comparison) -> Plan:
        """Demand that a path below the last element finds something."""
        if isinstance(nodes, Path) and nodes.start is None and not nodes.absolute:
            self.branches.append(_PathCompiler(self.steps).compile(nodes.steps, comparison).formula)
        return ANYTHING


def _own_comparison(predicate: Expression) -> Comparison | None:
    """The comparison in a predicate of the form [. op constant]."""
    if isinstance(predicate, Binary) and predicate.operator in COMPARISONS:
        found = _nodes_and_constant(predicate)
        if found is not None and _subject(found[0]) == (Subject.SELF, None):
            return found[1]
    return None


def _subject(expression: Expression) -> tuple[Subject, ElementName | None] | None:
    """What `.`, `text()`, `@a` or `child` means for an element; None for anything else."""
    if not isinstance(expression, Path) or expression.absolute or expression.start is not None:
        return None
    steps = [step for step in expression.steps if step != Step("self", KindTest("node"))]
    if not steps:
        return Subject.SELF, None
    return _subject_of_step(steps[0]) if len(steps) == 1 else None


def _subject_of_step(step: Step) -> tuple[Subject, ElementName | None] | None:
    if step.predicates:
        return None
    if step.axis == "child" and step.test == KindTest("text"):
        return Subject.TEXT, None
    if step.axis in ("attribute", "child") and isinstance(step.test, NameTest) and step.test.local is not None:
        kind = Subject.ATTRIBUTE if step.axis == "attribute" else Subject.CHILD
        return kind, _element_name(step.test)
    return None


def _element_name(test: NodeTest) -> ElementName:
    match test:
        case NameTest(namespace, local):
            return ElementName(namespace or "", local or "*")
        case AnyName():
            return ANY_NAME
    raise TypeError(f"{test} is not a name")
