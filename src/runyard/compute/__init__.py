"""Where the processes of runs are started. ``base`` is the contract; its neighbours implement it."""
