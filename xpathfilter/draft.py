"""Subscriptions on their way into a segment: ids, rows of their paths, formulas, and one vocabulary.

    add(7, plan of //a/b)          row 0, slot wants row 0
    add(8, plan of //a or //b)     rows 1 2, formula 0 = 1 2 ANY, slot wants formula 0
    add_segment(older, slots)      its rows read back from its families, its words said in this vocabulary

`build` is the only way out: it makes equal paths and equal formulas one and freezes everything into arrays.
"""

import numpy as np

from sievecore.breathing import breathe, breathing
from sievecore.ranking import ranked
from sievecore.rows import Rows, concatenate_rows, distinct_rows, new_rows
from xpathfilter.algorithms import Algorithm
from xpathfilter.plan import FALSE, Combination, LinearPath, PathStep, Plan
from xpathfilter.programs import Program, renumbered, write_program
from xpathfilter.segment import Segment, Verified
from xpathfilter.subscribers import build_subscribers
from xpathfilter.vocabulary import Vocabulary

__all__ = ["Draft"]

NO_ROW = -1

Formula = tuple[Program, Verified | None]


class Draft:
    """Collects subscriptions; ids must be added in ascending order within a call and differ between calls."""

    def __init__(self, algorithm: Algorithm) -> None:
        self._algorithm = algorithm
        self.vocabulary = Vocabulary()
        self._codes: dict[PathStep, int] = {}
        self._rows: list[Rows] = []
        self._n_rows = 0
        self._loose_steps: list[int] = []  # rows that came one by one and are not in an array yet
        self._loose_lengths: list[int] = []
        self._row_of_path: dict[LinearPath, int] = {}
        self._formulas: list[Formula] = []
        self._wants: list[np.ndarray] = []  # rows of (id, wanted row or NO_ROW, wanted formula)
        self._loose_wants: list[tuple[int, int, int]] = []

    def step_code(self, step: PathStep) -> int:
        """The number of a step: its record * 2, and 1 more for a descendant."""
        code = self._codes.get(step)
        if code is None:
            code = self._codes[step] = self.vocabulary.record(step) * 2 + step.descendant
        return code

    def add(self, subscription_id: int, plan: Plan, verified: Verified) -> None:
        """Add one subscription; `verified` is its text, for lxml, if the plan needs it."""
        if isinstance(plan.formula, LinearPath) and plan.exact:
            self._loose_wants.append((subscription_id, self._row(plan.formula), 0))
            return
        needs_lxml = not plan.exact and plan.formula != FALSE
        program = write_program(plan.formula, self._leaf)
        self._formulas.append((program, verified if needs_lxml else None))
        self._loose_wants.append((subscription_id, NO_ROW, len(self._formulas) - 1))

    def add_rows(self, ids: np.ndarray, rows: Rows) -> None:
        """Add many subscriptions, each to one path."""
        first = self._take_rows(rows)
        self._wants.append(np.stack([ids, first + np.arange(rows.n_rows), np.zeros(rows.n_rows, np.int64)], axis=1))

    def add_segment(self, segment: Segment, slots: np.ndarray) -> None:
        """Add some subscriptions of a frozen segment."""
        slot_terminal, slot_formula = (wanted[slots] for wanted in segment.wants())
        choosy = slot_terminal < 0
        formulas, formula_rank = ranked(slot_formula[choosy], len(segment.verified))
        programs = [segment.formula(formula) for formula in breathing(formulas.tolist())]
        leaves = np.array([word for program, _ in programs for word in program if word >= 0], np.int32)
        wanted = np.concatenate([slot_terminal[~choosy], leaves])
        terminals, terminal_rank = ranked(wanted, len(segment.families.targets))
        first = self._take_rows(self._translated(segment, segment.algorithm.rows(segment.families, terminals)))
        row_of_leaf = {leaf: first + int(terminal_rank[leaf]) for leaf in leaves.tolist()}
        first_formula = len(self._formulas)
        self._formulas += [(renumbered(program, row_of_leaf), verified) for program, verified in programs]
        rows = np.where(choosy, NO_ROW, first + terminal_rank[slot_terminal])
        formula = np.where(choosy, first_formula + formula_rank[slot_formula], 0)
        self._wants.append(np.stack([segment.ids[slots], rows, formula], axis=1))

    def build(self) -> Segment:
        """Freeze what was added so far."""
        self._collect_loose()
        self._rows = [concatenate_rows([new_rows([], []), *self._rows])]
        words, record_of = self.vocabulary.freeze(
            np.bincount(self._rows[0].values >> 1, minlength=self.vocabulary.n_records)
        )
        rows, number = distinct_rows(_renumbered(self._rows[0], record_of))
        families, terminals = self._algorithm.build(rows, words.n_records)
        breathe()
        terminal_of_row = terminals[number]
        formulas, formula_number = self._distinct_formulas(terminal_of_row)
        ids, wanted_rows, wanted_formulas = self._slots()
        slot_terminal = np.where(wanted_rows >= 0, terminal_of_row[wanted_rows] if len(number) else NO_ROW, NO_ROW)
        slot_formula = formula_number[wanted_formulas] if len(formulas) else wanted_formulas
        subscribers = build_subscribers(
            ids,
            slot_terminal,
            slot_formula,
            [program for program, _ in formulas],
            [verified is not None for _, verified in formulas],
            families.targets,
        )
        breathe()
        assert (families.targets[terminals] >= 0).all(), "a path that nobody wants has no place in a segment"
        verified = tuple(verified for _, verified in formulas)
        return Segment(self._algorithm, words, families, subscribers, verified)

    def _row(self, path: LinearPath) -> int:
        row = self._row_of_path.get(path)
        if row is None:
            row = self._row_of_path[path] = self._n_rows
            self._n_rows += 1
            self._loose_steps += [self.step_code(step) for step in reversed(path.steps)]
            self._loose_lengths.append(len(path.steps))
        return row

    def _leaf(self, path: Combination) -> int:
        assert isinstance(path, LinearPath)
        return self._row(path)

    def _collect_loose(self) -> None:
        """Put what came one by one into arrays: a few large ones are far cheaper to join than many small ones."""
        if self._loose_lengths:
            self._rows.append(new_rows(self._loose_steps, self._loose_lengths))
            self._loose_steps, self._loose_lengths = [], []
        if self._loose_wants:
            self._wants.append(np.array(self._loose_wants, np.int64))
            self._loose_wants = []

    def _take_rows(self, rows: Rows) -> int:
        self._collect_loose()
        first = self._n_rows
        self._rows.append(rows)
        self._n_rows += rows.n_rows
        return first

    def _slots(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What each slot wants: ids ascending, rows and formulas."""
        self._wants = [np.concatenate([np.zeros((0, 3), np.int64), *self._wants])]
        in_order = np.argsort(self._wants[0][:, 0], kind="stable")
        ids, rows, formulas = self._wants[0][in_order].T.copy()
        return ids, rows, formulas

    def _distinct_formulas(self, terminal_of_row: np.ndarray) -> tuple[list[Formula], np.ndarray]:
        numbers: dict[Formula, int] = {}
        number = np.zeros(len(self._formulas), np.int64)
        for i, (program, verified) in enumerate(breathing(self._formulas)):
            over_terminals = tuple(int(terminal_of_row[word]) if word >= 0 else word for word in program)
            number[i] = numbers.setdefault((over_terminals, verified), len(numbers))
        return list(numbers), number

    def _translated(self, segment: Segment, rows: Rows) -> Rows:
        """The rows of another segment, in the codes of this draft."""
        used, rank = ranked(rows.values >> 1, segment.words.n_records)
        return _renumbered(rows, np.int32(self.vocabulary.add_words(segment.words, used)) + rank)


def _renumbered(rows: Rows, record_of: np.ndarray) -> Rows:
    """The same paths over other numbers of records."""
    return rows._replace(values=record_of[rows.values >> 1] * np.int32(2) + (rows.values & 1))
