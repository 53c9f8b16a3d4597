"""A dictionary-encoded column of strings: few are distinct, so each is stored and compared once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Optional

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Ranks = npt.NDArray[np.float64]


class StringColumn:
    def __init__(self, texts: Iterable[Optional[str]], count: int) -> None:
        self._codes_by_text: dict[Optional[str], int] = {}
        self._codes = np.fromiter((self._code(text) for text in texts), np.intp, count)
        self._ranks: Optional[Ranks] = None

    def put(self, index: int, text: Optional[str]) -> None:
        self._codes[index] = self._code(text)

    def where(self, predicate: Callable[[str], bool]) -> Mask:
        """Evaluate a predicate for each row; False for rows without a text."""
        results = np.fromiter((text is not None and predicate(text) for text in self._codes_by_text), np.bool_)
        mask: Mask = results[self._codes]
        return mask

    def ranks(self) -> Ranks:
        """A number for each row that sorts like its text; NaN for rows without one."""
        if self._ranks is None:
            self._ranks = np.full(len(self._codes_by_text), np.nan)
            for rank, text in enumerate(sorted(text for text in self._codes_by_text if text)):
                self._ranks[self._codes_by_text[text]] = rank
        ranks: Ranks = self._ranks[self._codes]
        return ranks

    def counts(self) -> dict[str, int]:
        counts = np.bincount(self._codes, minlength=len(self._codes_by_text)).tolist()
        return {text: counts[code] for text, code in self._codes_by_text.items() if text and counts[code]}

    def _code(self, text: Optional[str]) -> int:
        code = self._codes_by_text.get(text)
        if code is None:
            code = self._codes_by_text[text] = len(self._codes_by_text)
            self._ranks = None
        return code
