"""Where each subscription's filter is: 8 bytes a subscription, and more only for those with XPATH atoms.

number ──▶ +id in the XPath engine, -id in the Boolean engine, 0 nowhere
"""

from sievefilters import Handle
from sievefilters.number_array import NumberArray

__all__ = ["FilterPlaces"]


class FilterPlaces:
    """
    >>> places = FilterPlaces()
    >>> places.put(7, Handle("boolean", 3, atoms=(1, 2)))
    >>> places.get(7)
    Handle(kind='boolean', id=3, atoms=(1, 2))
    >>> places.get(8) is None
    True
    """

    def __init__(self) -> None:
        self._places = NumberArray()
        self._atoms: dict[int, tuple[int, ...]] = {}

    def put(self, number: int, handle: Handle) -> None:
        self._places.put(number, handle.id if handle.kind == "xpath" else -handle.id)
        if handle.atoms:
            self._atoms[number] = handle.atoms
        else:
            self._atoms.pop(number, None)

    def get(self, number: int) -> Handle | None:
        place = self._places[number]
        if not place:
            return None
        return Handle("xpath" if place > 0 else "boolean", abs(place), self._atoms.get(number, ()))

    def take(self, number: int) -> Handle | None:
        """The handle, which is forgotten."""
        handle = self.get(number)
        if handle is not None:
            self._places.put(number, 0)
            self._atoms.pop(number, None)
        return handle
