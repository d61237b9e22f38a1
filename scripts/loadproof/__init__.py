"""Put the plan to the test: replay the surge it promises to survive, with autoscaling live."""
