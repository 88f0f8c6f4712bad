"""The policy pack in the real engine: what it stops, what it notes, and how long it takes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from local import tools
from local.dev import prepare_pack
from local.progress import Progress
from tests.policies.builders import fake_key

ROOT = Path(__file__).parents[2]
PACK = ROOT / "policies" / "pack"

PROGRAM = """
import os
import pulumi
import pulumi_kubernetes as kubernetes

provider = kubernetes.Provider("cluster", cluster_identifier="test", render_yaml_to_directory=os.environ["RENDERED"])
opts = pulumi.ResourceOptions(provider=provider)


def config_map(name, data):
    kubernetes.core.v1.ConfigMap(name, metadata={"name": name, "namespace": "llm"}, data=data, opts=opts)


"""


class Stack:
    """A throw-away stack in a folder of its own, run by the real engine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PATH": tools.search_path(),
            "PULUMI_BACKEND_URL": f"file://{folder}",
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_SKIP_CHECKPOINTS": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "RENDERED": str(folder / "rendered"),
        }
        project = {"name": "moonstack", "runtime": {"name": "python", "options": {"virtualenv": sys.prefix}}}
        (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))

    def write(self, body: str) -> None:
        (self.folder / "__main__.py").write_text(PROGRAM + body)

    def run(self, *arguments: str, pack: bool = True) -> subprocess.CompletedProcess[str]:
        policies = ["--policy-pack", str(PACK)] if pack else []
        return self.pulumi(*arguments, "--stack", "test", "--non-interactive", *policies)

    def pulumi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(tools.path("pulumi")), *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300, check=False
        )


@pytest.fixture
def stack(tmp_path) -> Stack:
    tools.ensure()
    prepare_pack(Progress())
    made = Stack(tmp_path)
    made.write("")
    done = made.pulumi("stack", "init", "test")
    assert done.returncode == 0, done.stderr
    return made


def test_a_key_in_a_config_map_stops_preview_and_up_and_is_never_printed(stack):
    key = fake_key()
    stack.write(f"config_map('bad', {{'config.toml': 'api = \"{key}\"'}})")
    for verb in ("preview", "up"):
        done = stack.run(verb, *(["--yes"] if verb == "up" else []))
        said = done.stdout + done.stderr
        assert done.returncode != 0, said
        assert "[mandatory]" in said
        assert 'no-key-text: ConfigMap llm/bad: data["config.toml"]' in said
        assert key not in said
    assert not list((stack.folder / "rendered").rglob("*bad*"))


def test_a_clean_stack_passes(stack):
    stack.write("config_map('good', {'config.toml': 'name = 1'})")
    done = stack.run("preview")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[mandatory]" not in done.stdout


def test_a_value_that_is_unknown_in_preview_is_noted_there_and_judged_in_up(stack):
    body = fake_key().removeprefix("sk-")
    stack.write(
        "late = pulumi.Stash('late', input='anything')\n"
        f"config_map('late', {{'x': late.id.apply(lambda _: 'sk-' + '{body}')}})"
    )
    preview = stack.run("preview")
    up = stack.run("up", "--yes", "--skip-preview")
    said = up.stdout + up.stderr
    assert "no-key-text: ConfigMap llm/late: data.x" in said
    assert up.returncode != 0, said
    assert "[advisory]" in preview.stdout
    assert "no-key-text: ConfigMap llm/late: data.x: unknown until up" in preview.stdout
    assert preview.returncode == 0, preview.stdout


def test_rules_between_objects_run_on_the_whole_stack(stack):
    stack.write(
        "kubernetes.core.v1.Service('s', metadata={'name': 's', 'namespace': 'llm'}, spec={'selector': {'app': 'none'}}, opts=opts)"
    )
    done = stack.run("preview")
    assert done.returncode != 0
    assert "selectors-match: Service llm/s: spec.selector: matches no pod" in done.stdout


def test_the_pack_knows_the_environment_of_the_stack_that_it_judges(stack):
    """A client key without an expiry is refused in prod, and where the configuration can't be read; dev may have it."""
    stack.write(
        "kubernetes.core.v1.Secret('key', metadata={'name': 'key', 'labels': "
        "{'moonstack.dev/key-id': 'one', 'moonstack.dev/purpose': 'client', 'moonstack.dev/environment': 'dev', "
        "'moonstack.dev/consumer': 'gateway'}, 'annotations': {'moonstack.dev/owner': 'x'}}, data={'value': 'eA=='}, "
        "opts=pulumi.ResourceOptions(provider=provider))"
    )
    assert "every key of prod ends some day" in stack.run("preview").stdout
    path = stack.folder / "Pulumi.test.yaml"
    dev = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | dev))
    assert "every key of prod ends some day" not in stack.run("preview").stdout
