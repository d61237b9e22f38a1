"""The instances: container processes with the stages a SageMaker instance goes through."""
