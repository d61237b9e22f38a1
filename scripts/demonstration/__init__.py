"""The demo: the chain's own commands, one after the other."""
