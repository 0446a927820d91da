"""The polygons of WITHIN: well-known text that stands for an area, checked and in one spelling.

    polygon((0 0, 4 0, 4 4, 0 0))                 ──▶  'POLYGON ((0 0, 4 4, 4 0, 0 0))'
    POLYGON((0 0, 1 1, 1 0, 0 1, 0 0))            ──▶  Self-intersection at 0.5 0.5

The one spelling (shapely's normal form) lets subscriptions share a polygon that was drawn the other way round. It
keeps every bit of the coordinates; GEOS itself writes at most 16 digits, which moves one corner in five. Coordinates
are taken as they are, in a plane: x first, as in `values.Point`.
"""

import re
from typing import Any

import numpy as np
import shapely

__all__ = ["PolygonError", "read_polygon"]

# The parser of geometries in GEOS recurses into collections and stops at a NUL, so it only sees what has neither.
ALLOWED = re.compile(r"\s*(?:MULTI)?POLYGON\b[\t\n\r -~]*", re.IGNORECASE)
PLACE = re.compile(r"(.*)\[(.*)\]")


class PolygonError(ValueError):
    """Why a text is no polygon to look into. The parser says where in the expression it stands."""


def read_polygon(text: str) -> str:
    """Return the polygon that `text` describes, in its one spelling.

    >>> read_polygon("POLYGON((0 0, 4 0, 4 4, 0 0))")
    'POLYGON ((0 0, 4 4, 4 0, 0 0))'
    """
    if not ALLOWED.fullmatch(text):
        raise PolygonError("write POLYGON((x y, ...)) or MULTIPOLYGON(((x y, ...)), ...)")
    with np.errstate(all="ignore"):  # GEOS overflows on the way to refusing NaN and infinity.
        polygon = _read_geometry(text)
        _check(polygon)
        return _spell(shapely.normalize(polygon))


def _read_geometry(text: str) -> Any:
    try:
        return shapely.from_wkt(text)
    except shapely.errors.ShapelyError as problem:
        raise PolygonError(str(problem).partition(": ")[2] or str(problem)) from None


def _check(polygon: Any) -> None:
    if shapely.get_coordinate_dimension(polygon) != 2:
        raise PolygonError("a point of it has two coordinates")
    if shapely.is_empty(polygon):
        raise PolygonError("nothing is within an empty polygon")
    if not shapely.is_valid(polygon):
        raise PolygonError(PLACE.sub(r"\1 at \2", shapely.is_valid_reason(polygon)))


def _spell(shape: Any) -> str:
    if shape.geom_type == "Polygon":
        return f"POLYGON {_spell_rings(shape)}"
    return f"MULTIPOLYGON ({', '.join(_spell_rings(part) for part in shape.geoms if not part.is_empty)})"


def _spell_rings(polygon: Any) -> str:
    rings = [polygon.exterior, *polygon.interiors]
    return f"({', '.join(_spell_ring(ring) for ring in rings if not ring.is_empty)})"


def _spell_ring(ring: Any) -> str:
    points = shapely.get_coordinates(ring) + 0.0  # no minus zero
    return f"({', '.join(f'{_spell_number(x)} {_spell_number(y)}' for x, y in points.tolist())})"


def _spell_number(number: float) -> str:
    return repr(number).removesuffix(".0")
