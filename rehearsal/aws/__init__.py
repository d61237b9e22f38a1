"""How AWS requests come in: JSON services of our own, everything else through moto."""
