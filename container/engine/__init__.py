"""Engines: what turns text into samples."""

import os

# Before any OpenMP runtime loads: its threads otherwise spin while they wait for each other, and where the cores are
# shared (two lanes, several containers, a load generator) a spinning thread keeps the one it waits for from running.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Before torch loads: oneDNN keeps a compiled convolution with its own copy of the weights for every shape it meets, and
# nearly every text has a shape of its own. At oneDNN's default of 1024 a process grows by 10 to 25 MiB a request.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
