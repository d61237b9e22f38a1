"""SageMaker Runtime: invocations, event streams, routing, error mapping."""
