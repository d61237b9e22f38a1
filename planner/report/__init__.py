"""One self-contained HTML file from whatever was measured, planned, simulated and validated."""
