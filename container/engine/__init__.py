"""Engines: what turns text into samples."""

import os

# Before any OpenMP runtime loads: its threads otherwise spin while they wait for each other, and where the cores are
# shared (two lanes, several containers, a load generator) a spinning thread keeps the one it waits for from running.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
