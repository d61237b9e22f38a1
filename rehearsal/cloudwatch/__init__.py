"""CloudWatch as its readers see it: periods, statistics, expressions, alarms."""
