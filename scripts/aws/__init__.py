"""AWS helpers that loadtest/ and scripts/ share."""
