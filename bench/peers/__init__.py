"""Our container beside other Kokoro servers: same weights, same texts, same voice, taking turns in one run."""
