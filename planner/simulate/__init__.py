"""Replay a traffic profile against a fleet, a scaling policy, T_total and admission."""
