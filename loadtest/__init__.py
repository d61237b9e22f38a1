"""Locust load profiles, transports, corpus and rung statistics."""
