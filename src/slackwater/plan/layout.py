"""The layout of a drawing: boxes in layers from left to right, with few crossings and short arrows.

1. A box's layer is the length of the longest path to it. An arrow that spans several layers gets a waypoint in each
   layer in between.
2. The boxes of each layer are sorted by the mean position of their neighbours, sweeping back and forth; the order with
   the fewest crossings is kept.
3. Boxes are moved towards the middle of their neighbours, as far as their order and the gaps allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from slackwater.plan.boxes import Arrow

_SWEEPS: Final = 12
_GAP: Final = 22.0
_BETWEEN: Final = 56.0
_A_CHAR: Final = 6.0
"""The approximate width of a letter of a label."""
_APART: Final = 20.0
"""The distance between arrows that end at the same box."""


class Size(NamedTuple):
    """The width and height of a box."""

    width: float
    height: float


@dataclass(kw_only=True)
class Placed:
    """The position of a box: its upper left corner and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The vertical centre of the box."""
        return self.y + self.height / 2


@dataclass(kw_only=True)
class Layout:
    """The positions of all boxes, and the points of each arrow."""

    places: dict[str, Placed]
    layers: list[list[str]]
    """The boxes of each layer from top to bottom, without waypoints."""
    routes: list[list[tuple[float, float]]]
    """For each arrow: its start, a pair of points for each layer that it enters and leaves, and its end."""
    width: float
    height: float


def layers_of(names: Sequence[str], arrows: Sequence[Arrow]) -> dict[str, int]:
    """Return the layer of each box: one more than the highest layer among its predecessors."""
    layer = dict.fromkeys(names, 0)
    for _ in names:
        changed = False
        for arrow in arrows:
            if layer[arrow.end] <= layer[arrow.start]:
                layer[arrow.end], changed = layer[arrow.start] + 1, True
        if not changed:
            break
    return layer


@dataclass(kw_only=True)
class _Links:
    """The neighbours of each box or waypoint, before and after it."""

    before: dict[str, list[str]] = field(default_factory=dict)
    after: dict[str, list[str]] = field(default_factory=dict)

    def join(self, start: str, end: str) -> None:
        self.after.setdefault(start, []).append(end)
        self.before.setdefault(end, []).append(start)


def lay_out(sizes: Mapping[str, Size], arrows: Sequence[Arrow]) -> Layout:
    """Return the layout of boxes of these sizes, given in plan order."""
    layer = layers_of([*sizes], arrows)
    order: list[list[str]] = [[] for _ in range(max(layer.values(), default=0) + 1)]
    for name in sizes:
        order[layer[name]].append(name)
    links, ways = _Links(), list[list[str]]()
    for number, arrow in enumerate(arrows):  # 1
        between = [f"way {number} {at}" for at in range(layer[arrow.start] + 1, layer[arrow.end])]
        for at, name in enumerate(between, layer[arrow.start] + 1):
            order[at].append(name)
        way = [arrow.start, *between, arrow.end]
        for start, end in pairwise(way):
            links.join(start, end)
        ways.append(way)
    order = _with_few_crossings(order, links)  # 2
    room = [_BETWEEN] * len(order)
    for arrow in arrows:
        room[layer[arrow.end]] = max(room[layer[arrow.end]], len(arrow.label) * _A_CHAR + _BETWEEN / 2)
    places = _placed(order, sizes, links, room)  # 3
    return Layout(
        places={name: places[name] for name in sizes},
        layers=[[name for name in names if name in sizes] for names in order],
        routes=_routes(ways, places),
        width=max((place.x + place.width for place in places.values()), default=0),
        height=max((place.y + place.height for place in places.values()), default=0),
    )


def lay_out_upright(sizes: Mapping[str, Size], arrows: Sequence[Arrow]) -> Layout:
    """Return the layout of a drawing whose layers go from top to bottom: that from left to right, turned."""
    turned = lay_out({name: Size(size.height, size.width) for name, size in sizes.items()}, arrows)
    places = {name: Placed(x=at.y, y=at.x, width=at.height, height=at.width) for name, at in turned.places.items()}
    routes = [[(x, y) for y, x in route] for route in turned.routes]
    for arrow, route in zip(arrows, routes, strict=True):
        # A layer is as high as its highest box; an arrow begins at its own.
        route[0] = (route[0][0], places[arrow.start].y + sizes[arrow.start].height)
    height = max((place.y + sizes[name].height for name, place in places.items()), default=0)
    return Layout(places=places, layers=turned.layers, routes=routes, width=turned.height, height=height)


def _with_few_crossings(order: list[list[str]], links: _Links) -> list[list[str]]:
    best, fewest = [list(names) for names in order], _crossings(order, links)
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        joined = links.before if forward else links.after
        for names in order if forward else reversed(order):
            rank = {name: at for row in order for at, name in enumerate(row)}
            means = {
                name: sum(rank[each] for each in joined[name]) / len(joined[name]) if name in joined else rank[name]
                for name in names
            }
            names.sort(key=lambda name, means=means: means[name])  # type: ignore[misc]  # bound early
        if (crossings := _crossings(order, links)) < fewest:
            best, fewest = [list(names) for names in order], crossings
    return best


def _crossings(order: list[list[str]], links: _Links) -> int:
    total = 0
    for names, following in pairwise(order):
        rank = {name: at for at, name in enumerate(following)}
        ends = [rank[end] for name in names for end in sorted(links.after.get(name, ()), key=lambda end: rank[end])]
        total += sum(ends[first] > ends[second] for second in range(len(ends)) for first in range(second))
    return total


def _placed(
    order: list[list[str]], sizes: Mapping[str, Size], links: _Links, room: Sequence[float]
) -> dict[str, Placed]:
    """Return the positions of boxes and waypoints; `room` is the space that each layer needs in front of it."""
    places: dict[str, Placed] = {}
    x = -room[0]
    for names, before in zip(order, room, strict=True):
        x += before
        width, y = max((sizes[name].width for name in names if name in sizes), default=0.0), 0.0
        for name in names:
            height = sizes[name].height if name in sizes else 0.0
            places[name] = Placed(x=x, y=y, width=width, height=height)
            y += height + _GAP
        x += width
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        for names in order if forward else reversed(order):
            _move([places[name] for name in names], [_wanted(name, places, links, forward=forward) for name in names])
    top = min((place.y for place in places.values()), default=0.0)
    for place in places.values():
        place.y -= top
    return places


def _wanted(name: str, places: Mapping[str, Placed], links: _Links, *, forward: bool) -> float:
    """Return the preferred position of a box: the middle of its neighbours."""
    first, second = (links.before, links.after) if forward else (links.after, links.before)
    joined = first.get(name) or second.get(name) or [name]
    return sum(places[each].middle for each in joined) / len(joined) - places[name].height / 2


def _move(column: Sequence[Placed], wanted: Sequence[float]) -> None:
    """Move the boxes of one layer to their preferred positions, as far as their order and the gaps allow."""
    down, up = list(wanted), list(wanted)
    for at in range(1, len(column)):
        down[at] = max(down[at], down[at - 1] + column[at - 1].height + _GAP)
    for at in range(len(column) - 2, -1, -1):
        up[at] = min(up[at], up[at + 1] - column[at].height - _GAP)
    for place, low, high in zip(column, down, up, strict=True):
        place.y = (low + high) / 2  # both keep the gaps, so their mean does


def _routes(ways: Sequence[Sequence[str]], places: Mapping[str, Placed]) -> list[list[tuple[float, float]]]:
    """Return the points of each arrow; arrows that end at the same box are spread from top to bottom."""
    ending: dict[str, list[int]] = {}
    for number, way in enumerate(ways):
        ending.setdefault(way[-1], []).append(number)
    shift: dict[int, float] = {}
    for name, numbers in ending.items():
        numbers.sort(key=lambda number: places[ways[number][-2]].middle)
        apart = min(_APART, places[name].height / (len(numbers) + 1))
        shift |= {number: (at - (len(numbers) - 1) / 2) * apart for at, number in enumerate(numbers)}
    routes = []
    for number, way in enumerate(ways):
        points = []
        for at, place in enumerate([places[name] for name in way]):
            if at:
                points.append((place.x, place.middle + (shift[number] if at == len(way) - 1 else 0)))
            if at < len(way) - 1:
                points.append((place.x + place.width, place.middle))
        routes.append(points)
    return routes
