"""A column of texts: runs share few different ones, so each is kept, looked at and compared once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Optional

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Ranks = npt.NDArray[np.float64]


class Texts:
    def __init__(self, texts: Iterable[Optional[str]], count: int) -> None:
        self._codes_of: dict[Optional[str], int] = {}
        self._codes = np.fromiter((self._code(text) for text in texts), np.intp, count)
        self._ranks: Optional[Ranks] = None

    def put(self, place: int, text: Optional[str]) -> None:
        self._codes[place] = self._code(text)

    def where(self, meets: Callable[[str], bool]) -> Mask:
        """Whether each row's text meets a condition; no text meets none."""
        verdicts = np.fromiter((text is not None and meets(text) for text in self._codes_of), np.bool_)
        mask: Mask = verdicts[self._codes]
        return mask

    def ranks(self) -> Ranks:
        """A number for each row that sorts as its text does; NaN where there is none."""
        if self._ranks is None:
            known = sorted(text for text in self._codes_of if text)
            self._ranks = np.full(len(self._codes_of), np.nan)
            for rank, text in enumerate(known):
                self._ranks[self._codes_of[text]] = rank
        ranks: Ranks = self._ranks[self._codes]
        return ranks

    def counts(self) -> dict[str, int]:
        found = np.bincount(self._codes, minlength=len(self._codes_of)).tolist()
        return {text: found[code] for text, code in self._codes_of.items() if text and found[code]}

    def _code(self, text: Optional[str]) -> int:
        code = self._codes_of.get(text)
        if code is None:
            code = self._codes_of[text] = len(self._codes_of)
            self._ranks = None
        return code
