"""The yard: one background process per home folder. Run it with `python -m runyard.yard --home FOLDER`.

The first client starts it, and it exits when it is idle. The process that holds the lock on `yard.lock` is the yard;
the socket is only its address.
"""
