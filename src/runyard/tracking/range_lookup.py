"""Where in a long series a part of an axis lies, found without reading the series."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Optional

import numpy as np
from sqlalchemy import select

from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.blocks import Columns, Floats, decode
from runyard.tracking.series import find_series


class Stretch(NamedTuple):
    first: int = 0
    limit: Optional[int] = None  # None: to the end
    total: Optional[int] = None  # of the whole series


def find_stretch(
    database: Database,
    run_id: str,
    name: str,
    axis: Callable[[Columns], Optional[Floats]],
    begin: Optional[float],
    end: Optional[float],
) -> Stretch:
    """It holds every point from ``begin`` to ``end``, one more on each side, and some others.

    The summaries of the blocks tell where each block is, as long as the axis only goes up; else it is all of them.
    ``axis`` gives the places of points, or None when they cannot be told.
    """
    with database.read() as connection:
        series = find_series(connection, run_id, name)
        if series is None:
            return Stretch()
        blocks = schema.blocks.c
        query = select(blocks.first, blocks.count, blocks.summary).where(blocks.series_id == series.series_id)
        rows = connection.execute(query.order_by(blocks.number)).all()
    total = sum(count for _, count, _ in rows)
    # the last blocks may be too small to have a summary: they are read whenever the end is
    known = [(first, count, axis(decode(summary))) for first, count, summary in rows if summary is not None]
    places = [place for _, _, place in known if place is not None and len(place)]
    if not known or len(places) < len(known) or not (np.diff(np.concatenate(places)) >= 0).all():
        return Stretch(total=total)
    low, high = 0, len(known)
    if begin is not None:  # a block reaches beyond its summary, up to where the next one begins
        low = max(int(np.searchsorted([place[0] for place in places], begin, side="left")) - 1, 0)
    if end is not None:
        high = min(int(np.searchsorted([place[-1] for place in places], end, side="right")) + 1, len(known))
    first = max(known[low][0] - 1, 0)
    if high == len(known):
        return Stretch(first, total=total)
    last, count, _ = known[high - 1]
    return Stretch(first, last + count + 1 - first, total)
