"""T_total: force one scale-out and see when each stage ends."""
