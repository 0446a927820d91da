"""A polygon is read, checked, and spelled in one way."""

import pytest
import shapely
from bool_strategies import polygon_texts
from hypothesis import given
from hypothesis import strategies as st

from boolmatch.polygons import PolygonError, read_polygon

TRIANGLE = "POLYGON ((0 0, 1 1, 1 0, 0 0))"

SAME = {
    "as_it_is": TRIANGLE,
    "without_blanks": "POLYGON((0 0,1 1,1 0,0 0))",
    "the_other_way_round": "POLYGON((0 0, 1 0, 1 1, 0 0))",
    "from_another_corner": "POLYGON((1 0, 0 0, 1 1, 1 0))",
    "with_minus_zeros": "POLYGON((-0 -0, 1 -0, 1 1, -0 -0))",
    "in_small_letters": " polygon\n((0.0 0, 1e0 1, 1 0, -0 0)) ",
}


def test_parts_and_holes_that_are_empty_are_left_out() -> None:
    assert read_polygon("MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0), EMPTY), EMPTY)") == "MULTIPOLYGON (((0 0, 1 1, 1 0, 0 0)))"


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_one_area_has_one_spelling(text: str) -> None:
    assert read_polygon(text) == TRIANGLE


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0.001, 1000))
def test_no_bit_is_lost(x: float, y: float, size: float) -> None:
    corners = [(x, y), (x, y + size), (x + size, y + size), (x + size, y), (x, y)]
    spelled = read_polygon(f"POLYGON(({', '.join(f'{a!r} {b!r}' for a, b in corners)}))")
    assert shapely.get_coordinates(shapely.from_wkt(spelled)).tolist() == [[a, b] for a, b in corners]
    assert read_polygon(spelled) == spelled


@given(polygon_texts())
def test_the_area_is_kept(text: str) -> None:
    assert shapely.equals(shapely.from_wkt(read_polygon(text)), shapely.from_wkt(text))


FORM = "write POLYGON((x y, ...)) or MULTIPOLYGON(((x y, ...)), ...)"
BAD = {
    "nothing": ("", FORM),
    "another_shape": ("POINT(0 0)", FORM),
    "a_collection": ("GEOMETRYCOLLECTION(" * 100_000, FORM),
    "a_nul": ("POLYGON((0 0, 1 0, 1 1, 0 0))\0", FORM),
    "half_a_character": ("POLYGON((0 0, 1 0, 1 1, 0 0))\ud800", FORM),
    "not_closed": ("POLYGON((0 0, 1 0, 1 1))", "Points of LinearRing do not form a closed linestring"),
    "crossing_itself": ("POLYGON((0 0, 1 1, 1 0, 0 1, 0 0))", "Self-intersection at 0.5 0.5"),
    "a_hole_outside": (
        "POLYGON((0 0, 1 0, 1 1, 0 0), (5 5, 6 5, 6 6, 5 5))",
        "Hole lies outside shell at 5 5",
    ),
    "overlapping_parts": ("MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((0 0, 1 0, 1 1, 0 0)))", "Self-intersection at "),
    "empty": ("POLYGON EMPTY", "nothing is within an empty polygon"),
    "empty_parts": ("MULTIPOLYGON EMPTY", "nothing is within an empty polygon"),
    "nan": ("POLYGON((0 0, nan 0, 1 1, 0 0))", "Invalid Coordinate at nan 0"),
    "infinity": ("POLYGON((0 0, inf 0, 1 1, 0 0))", "Invalid Coordinate at inf 0"),
    "too_large": ("POLYGON((0 0, 1e999 0, 1 1, 0 0))", "Invalid Coordinate at inf 0"),
    "three_dimensions": ("POLYGON Z((0 0 1, 1 0 1, 1 1 1, 0 0 1))", "a point of it has two coordinates"),
    "text_behind": ("POLYGON((0 0, 1 0, 1 1, 0 0)) x", "Unexpected text after end of geometry"),
    "unfinished": ("POLYGON((0 0, 1", "Expected number but encountered end of stream"),
    "a_word_that_goes_on": ("POLYGONE((0 0, 1 0, 1 1, 0 0))", FORM),
}


@pytest.mark.parametrize("text, reason", BAD.values(), ids=BAD)
def test_it_is_refused_for(text: str, reason: str) -> None:
    with pytest.raises(PolygonError) as caught:
        read_polygon(text)
    assert str(caught.value).startswith(reason)
