"""Pure capacity maths, findings, simulation, and the artifact models every part shares."""
