"""Where Terraform's providers come from when there is no registry.

Searched in this order; the first directory that holds the AWS provider wins:
1. TF_CLI_ARGS or TF_CLI_ARGS_init with -plugin-dir, or a CLI configuration with provider_installation: Terraform's own
   business, nothing is added;
2. $TF_PLUGIN_MIRROR;
3. $TF_PLUGIN_CACHE_DIR;
4. Terraform's implied mirrors: terraform.d/plugins, ~/.terraform.d/plugins, $XDG_DATA_HOME/terraform/plugins,
   /usr/local/share/terraform/plugins, /usr/share/terraform/plugins;
5. /opt/terraform/plugins, /opt/terraform-plugins, /opt/tf-plugins.
Otherwise `terraform init` asks the registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PROVIDER = Path("registry.terraform.io/hashicorp/aws")
_OPT = ("/opt/terraform/plugins", "/opt/terraform-plugins", "/opt/tf-plugins")


def find(environment: Mapping[str, str], home: Path, directory: Path) -> Path | None:
    """The mirror to pass as -plugin-dir, or None."""
    if _configured(environment):
        return None
    return next((path for path in candidates(environment, home, directory) if (path / PROVIDER).is_dir()), None)


def candidates(environment: Mapping[str, str], home: Path, directory: Path) -> list[Path]:
    """Every directory that is looked at, in order."""
    data_home = Path(environment.get("XDG_DATA_HOME") or home / ".local/share")
    named = [environment[key] for key in ("TF_PLUGIN_MIRROR", "TF_PLUGIN_CACHE_DIR") if environment.get(key)]
    implied = [
        directory / "terraform.d/plugins",
        home / ".terraform.d/plugins",
        data_home / "terraform/plugins",
        Path("/usr/local/share/terraform/plugins"),
        Path("/usr/share/terraform/plugins"),
    ]
    return [*map(Path, named), *implied, *map(Path, _OPT)]


def _configured(environment: Mapping[str, str]) -> bool:
    arguments = environment.get("TF_CLI_ARGS_init", "") + environment.get("TF_CLI_ARGS", "")
    if "-plugin-dir" in arguments:
        return True
    file = Path(environment.get("TF_CLI_CONFIG_FILE") or environment.get("TERRAFORM_CONFIG") or "~/.terraformrc")
    file = file.expanduser()
    return file.is_file() and "provider_installation" in file.read_text(encoding="utf-8", errors="replace")
