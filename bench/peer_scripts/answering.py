"""How a peer answers the bench: a line in, seconds out. What the peer itself prints goes elsewhere."""

import os
import sys

_answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)


def answer_each_ask(work):
    for _ in sys.stdin:
        print(repr(work()), file=_answers)
