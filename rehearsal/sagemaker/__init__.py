"""SageMaker's control plane: models, endpoint configurations, endpoints, their states and refusals."""
