"""CodeBuild: projects kept as given, builds that do what Headroom's two buildspecs would leave behind."""
