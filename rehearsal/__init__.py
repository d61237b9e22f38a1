"""AWS on this machine, in one process: enough of it to rehearse the whole chain."""
