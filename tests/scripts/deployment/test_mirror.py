"""Where Terraform's providers are looked for."""

from __future__ import annotations

import pytest

from scripts.deployment import mirror


@pytest.fixture
def tree(tmp_path):
    def make(name: str):
        path = tmp_path / name
        (path / mirror.PROVIDER).mkdir(parents=True)
        return path

    return make


def test_the_variable_comes_first(tree, tmp_path):
    chosen, other = tree("mirror"), tree(".terraform.d/plugins")
    assert mirror.find({"TF_PLUGIN_MIRROR": str(chosen)}, tmp_path, tmp_path / "tf") == chosen
    assert mirror.find({}, tmp_path, tmp_path / "tf") == other


def test_a_variable_that_holds_no_provider_is_passed_over(tree, tmp_path):
    other = tree(".terraform.d/plugins")
    assert mirror.find({"TF_PLUGIN_MIRROR": str(tmp_path / "empty")}, tmp_path, tmp_path / "tf") == other


@pytest.mark.parametrize("variable", ["TF_CLI_ARGS", "TF_CLI_ARGS_init"])
def test_a_plugin_dir_of_the_users_own_stays(tree, tmp_path, variable):
    tree(".terraform.d/plugins")
    assert mirror.find({variable: "-plugin-dir=/x"}, tmp_path, tmp_path) is None


def test_a_provider_installation_block_stays(tree, tmp_path):
    tree(".terraform.d/plugins")
    rc = tmp_path / "rc"
    rc.write_text("provider_installation {\n}\n")
    assert mirror.find({"TF_CLI_CONFIG_FILE": str(rc)}, tmp_path, tmp_path) is None


def test_a_missing_cli_configuration_is_harmless(tree, tmp_path):
    other = tree(".terraform.d/plugins")
    assert mirror.find({"TF_CLI_CONFIG_FILE": str(tmp_path / "none")}, tmp_path, tmp_path / "tf") == other
