"""One verb a file against a deployed endpoint, and the AWS helpers they share."""
