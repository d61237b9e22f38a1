"""Plain servers in front of libraries that have none."""
