"""Starting, finding and stopping the processes of a run on one node."""
