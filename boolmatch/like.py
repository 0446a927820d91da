"""LIKE over UTF-8: does a text match a pattern of characters, any one character and any sequence?

    'a_c%'      97 ANY_ONE 99 ANY_RUN

After a sequence, what follows is tried at each place in turn; a later sequence makes all earlier choices final,
so there is one place to come back to, and the cost is at most that of pattern times text.
"""

import numpy as np

from boolmatch.patterns import ANY_ONE, ANY_RUN
from sievecore.jit import kernel

__all__ = ["like_matches"]


@kernel
def like_matches(program, position, end, text, place, stop):
    """Whether text[place:stop], in UTF-8, matches program[position:end]."""
    run, resumed = -1, place
    while place < stop or position < end:
        if position < end and program[position] == ANY_RUN:
            run, resumed = position, place
            position += 1
            continue
        if position < end and place < stop:
            character, after = _character(text, place)
            if program[position] == ANY_ONE or program[position] == character:
                position, place = position + 1, after
                continue
        if run < 0 or resumed >= stop:
            return False
        _, resumed = _character(text, resumed)
        position, place = run + 1, resumed
    return True


@kernel
def _character(text, place):
    """The code point at a place of well-formed UTF-8, and the place after it."""
    first = np.int64(text[place])
    if first < 0x80:
        return first, place + 1
    n_more = 1 + (first >= 0xE0) + (first >= 0xF0)
    character = first & (0x3F >> n_more)
    for i in range(1, n_more + 1):
        character = character << 6 | (np.int64(text[place + i]) & 0x3F)
    return character, place + n_more + 1
