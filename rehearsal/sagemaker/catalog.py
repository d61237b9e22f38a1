"""Models, endpoint configurations and tags: stored as given, described as stored."""

from __future__ import annotations

import time

from rehearsal.aws.service import Operation, Params
from rehearsal.sagemaker.listing import listed
from rehearsal.sagemaker.names import already_exists, arn, not_found


class Catalog:
    """What endpoints are made of."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._models: dict[str, Params] = {}
        self._configs: dict[str, Params] = {}
        self._tags: dict[str, dict[str, str]] = {}

    def operations(self) -> dict[str, Operation]:
        """By AWS's names."""
        return {
            "CreateModel": self._create_model,
            "DescribeModel": lambda params: self.model(params["ModelName"]),
            "ListModels": self._list_models,
            "DeleteModel": self._delete_model,
            "CreateEndpointConfig": self._create_config,
            "DescribeEndpointConfig": lambda params: self.config(params["EndpointConfigName"]),
            "ListEndpointConfigs": self._list_configs,
            "DeleteEndpointConfig": self._delete_config,
            "ListTags": self._list_tags,
            "AddTags": self._add_tags,
            "DeleteTags": self._delete_tags,
        }

    def model(self, name: str) -> Params:
        """As DescribeModel answers."""
        if name not in self._models:
            raise not_found("model", arn(self._region, "model", name))
        return self._models[name]

    def config(self, name: str) -> Params:
        """As DescribeEndpointConfig answers."""
        if name not in self._configs:
            raise not_found("endpoint configuration", arn(self._region, "endpoint-config", name))
        return self._configs[name]

    def tag(self, resource_arn: str, tags: list[dict[str, str]] | None) -> None:
        """Add or change tags."""
        known = self._tags.setdefault(resource_arn.lower(), {})
        known.update({tag["Key"]: tag["Value"] for tag in tags or []})

    def forget_tags(self, resource_arn: str) -> None:
        """A resource is gone."""
        self._tags.pop(resource_arn.lower(), None)

    def _create_model(self, params: Params) -> Params:
        name = params["ModelName"]
        model_arn = arn(self._region, "model", name)
        if name in self._models:
            raise already_exists("model", model_arn)
        body = {key: value for key, value in params.items() if key != "Tags"}
        body.setdefault("EnableNetworkIsolation", False)
        for container in [body.get("PrimaryContainer"), *body.get("Containers", [])]:
            if container:
                container.setdefault("Mode", "SingleModel")
        self._models[name] = {**body, "ModelArn": model_arn, "CreationTime": time.time()}
        self.tag(model_arn, params.get("Tags"))
        return {"ModelArn": model_arn}

    def _delete_model(self, params: Params) -> Params:
        self.forget_tags(self.model(params["ModelName"])["ModelArn"])
        del self._models[params["ModelName"]]
        return {}

    def _list_models(self, params: Params) -> Params:
        return listed(params, "Models", "Model", self._models.values())

    def _create_config(self, params: Params) -> Params:
        name = params["EndpointConfigName"]
        config_arn = arn(self._region, "endpoint-config", name)
        if name in self._configs:
            raise already_exists("endpoint configuration", config_arn)
        for variant in params["ProductionVariants"]:
            if "ModelName" in variant:
                self.model(variant["ModelName"])
            variant.setdefault("InitialVariantWeight", 1.0)
        body = {key: value for key, value in params.items() if key != "Tags"}
        self._configs[name] = {**body, "EndpointConfigArn": config_arn, "CreationTime": time.time()}
        self.tag(config_arn, params.get("Tags"))
        return {"EndpointConfigArn": config_arn}

    def _delete_config(self, params: Params) -> Params:
        self.forget_tags(self.config(params["EndpointConfigName"])["EndpointConfigArn"])
        del self._configs[params["EndpointConfigName"]]
        return {}

    def _list_configs(self, params: Params) -> Params:
        return listed(params, "EndpointConfigs", "EndpointConfig", self._configs.values())

    def _list_tags(self, params: Params) -> Params:
        tags = self._tags.get(params["ResourceArn"].lower(), {})
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}

    def _add_tags(self, params: Params) -> Params:
        self.tag(params["ResourceArn"], params["Tags"])
        return {"Tags": params["Tags"]}

    def _delete_tags(self, params: Params) -> Params:
        known = self._tags.get(params["ResourceArn"].lower(), {})
        for key in params["TagKeys"]:
            known.pop(key, None)
        return {}
