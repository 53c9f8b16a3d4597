"""The yard: one background process per home folder, made of all rooms. `python -m runyard.yard --home FOLDER`.

It is started by the first client and goes away when it is idle. The lock on `yard.lock` says who is the yard;
the socket only says where it listens.
"""
