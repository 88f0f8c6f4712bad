"""`python -m policies scan`: files in, violations out, exit code by the gravest."""

import base64
import json
from urllib.parse import unquote

import pytest
import yaml
from typer.testing import CliRunner

from policies.__main__ import app
from tests.policies.builders import deployment, fake_key, thing

SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:abc:def"}


def run(*arguments: str):
    return CliRunner().invoke(app, ["scan", *arguments])


def write(folder, name, *objects):
    (folder / name).write_text(yaml.safe_dump_all(objects))
    return folder


def state(resource_inputs, outputs=None):
    resource = {"urn": "urn:pulumi:dev::m::kubernetes:core/v1:Secret::s", "type": "kubernetes:core/v1:Secret"}
    return {
        "version": 3,
        "deployment": {"resources": [{**resource, "inputs": resource_inputs, "outputs": outputs or {}}]},
    }


def test_a_folder_is_read_as_a_whole_lists_included(tmp_path):
    key = fake_key()
    write(tmp_path, "a.yaml", thing("ConfigMap", "one", data={"x": key}), thing("ConfigMap", "two", data={"x": "fine"}))
    (tmp_path / "sub").mkdir()
    listed = {"kind": "ConfigMapList", "apiVersion": "v1", "items": [thing("ConfigMap", "three", data={"x": key})]}
    (tmp_path / "sub" / "b.json").write_text(json.dumps(listed))
    result = run(str(tmp_path), "--format", "json")
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert document["schema"] == 1
    assert [row["object"] for row in document["violations"]] == ["ConfigMap llm/one", "ConfigMap llm/three"]
    assert set(document["violations"][0]) == {"rule", "severity", "enforcement", "object", "path", "message"}
    assert key not in result.output


def test_clean_manifests_exit_with_0(tmp_path):
    result = run(str(write(tmp_path, "a.yaml", thing("ConfigMap", data={"x": "fine"}))))
    assert result.exit_code == 0
    assert "0 violation(s)" in result.stdout


def test_markdown_and_sarif_name_rule_and_object(tmp_path):
    write(tmp_path, "a.yaml", thing("ConfigMap", "one", data={"x": fake_key()}))
    assert "`no-key-text`" in run(str(tmp_path), "--format", "markdown").stdout
    sarif = json.loads(run(str(tmp_path), "--format", "sarif").stdout)
    (only,) = sarif["runs"][0]["results"]
    assert (only["ruleId"], only["level"]) == ("no-key-text", "error")
    assert only["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a.yaml"
    assert "no-key-text" in [rule["id"] for rule in sarif["runs"][0]["tool"]["driver"]["rules"]]


def test_sarif_names_files_as_uris_whatever_their_names(tmp_path):
    write(tmp_path, "ü #1 50%.yaml", thing("ConfigMap", "one", data={"x": fake_key()}))
    (only,) = json.loads(run(str(tmp_path), "--format", "sarif").stdout)["runs"][0]["results"]
    uri = only["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "%C3%BC%20%231%2050%25.yaml"
    assert unquote(uri) == "ü #1 50%.yaml"


def test_what_cannot_be_read_is_one_line_and_exit_2(tmp_path):
    (tmp_path / "a.yaml").write_text("a: [")
    for path, said in ((tmp_path / "none", "no such file"), (tmp_path, "cannot be read")):
        result = run(str(path))
        assert result.exit_code == 2
        assert said in result.output
        assert "Traceback" not in result.output
    assert "choose one of" in run(str(tmp_path), "--format", "xml").output


@pytest.mark.parametrize(
    "text",
    [
        '{"deployment": {"resources": ["x"]}}',
        '{"deployment": {"resources": 5}}',
        '{"kind": "Pod", "a": ' + "[" * 100_000,
    ],
)
def test_a_state_or_nesting_that_nobody_exports_is_one_line_and_exit_2(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    result = run(str(path))
    assert (result.exit_code, "cannot be read" in result.output) == (2, True)


def test_aliases_that_multiply_or_lead_in_a_circle_are_refused_at_once(tmp_path):
    layers = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12)]
    for text in ("\n".join(["kind: Pod", "l0: &l0 [x]", *layers]), "kind: Pod\nspec: &a {x: *a}"):
        path = tmp_path / "a.yaml"
        path.write_text(text)
        result = run(str(path))
        assert (result.exit_code, "aliases make more than" in result.output) == (2, True)


def test_aliases_that_only_share_a_value_are_scanned(tmp_path):
    key = fake_key()
    (tmp_path / "a.yaml").write_text(f"kind: ConfigMap\nmetadata: &m {{name: one}}\nx: *m\ndata: {{k: {key}}}\n")
    assert run(str(tmp_path)).exit_code == 1


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("NetworkPolicy", {"ingress": ["x"]}),
        ("HorizontalPodAutoscaler", {"maxReplicas": 3}),
        ("PodDisruptionBudget", {"selector": "x"}),
    ],
)
def test_an_object_of_a_wrong_shape_is_a_violation_and_hides_no_other(tmp_path, kind, spec):
    write(tmp_path, "a.yaml", thing(kind, "misshapen", spec=spec), thing("ConfigMap", "one", data={"x": fake_key()}))
    result = run(str(tmp_path))
    assert result.exit_code == 1
    assert "can't be judged" in result.output
    assert "no-key-text" in result.output


def test_a_folder_named_like_a_manifest_is_looked_into(tmp_path):
    (tmp_path / "x.yaml").mkdir()
    write(tmp_path / "x.yaml", "a.yaml", thing("ConfigMap", "one", data={"x": fake_key()}))
    assert "ConfigMap" in run(str(tmp_path)).stdout


def test_an_unknown_stack_is_answered_with_the_known_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.dev.yaml").touch()
    write(tmp_path, "a.yaml", thing("ConfigMap", data={}))
    result = run("a.yaml", "--stack", "pro")
    assert result.exit_code == 2
    assert "Pulumi.dev.yaml" in result.output


def test_an_encrypted_state_is_clean_and_a_readable_one_is_not(tmp_path):
    file = tmp_path / "state.json"
    encrypted = thing("Secret", data=SECRET)
    file.write_text(json.dumps(state(encrypted, encrypted)))
    assert run(str(file)).exit_code == 0
    readable = thing("Secret", data={"k": base64.b64encode(fake_key().encode()).decode()})
    file.write_text(json.dumps(state(encrypted, readable)))
    result = run(str(file))
    assert result.exit_code == 1
    assert "encrypted-in-state: Secret llm/thing: data.k" in result.stdout


def test_a_key_is_found_in_inputs_copied_to_outputs_and_in_a_checkpoint(tmp_path):
    file = tmp_path / "state.json"
    copied = thing("ConfigMap") | {"__inputs": {"data": {"x": fake_key()}}}
    exported = state(thing("ConfigMap"), copied)
    for document in (exported, {"version": 3, "checkpoint": {"latest": exported["deployment"]}}):
        file.write_text(json.dumps(document))
        result = run(str(file))
        assert result.exit_code == 1
        assert "__inputs.data.x" in result.stdout


def test_a_secret_exported_in_clear_text_is_seen_through(tmp_path):
    file = tmp_path / "state.json"
    shown = {key: value for key, value in SECRET.items() if key != "ciphertext"} | {
        "plaintext": json.dumps({"k": "dg=="})
    }
    file.write_text(json.dumps(state(thing("Secret", data=shown))))
    assert "encrypted-in-state" in run(str(file)).stdout


def test_replicas_in_a_state_are_judged_by_what_pulumi_ignores(tmp_path):
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "app"}, "maxReplicas": 2}
    scaler = thing("HorizontalPodAutoscaler", api="autoscaling/v2", spec=spec)
    for ignored, broken in (([], True), (["spec.replicas"], False)):
        resources = [
            {"urn": f"urn::{one['kind']}", "type": f"kubernetes:apps/v1:{one['kind']}", "inputs": one, **more}
            for one, more in ((scaler, {}), (deployment(replicas=3), {"ignoreChanges": ignored}))
        ]
        file = tmp_path / "state.json"
        file.write_text(json.dumps({"version": 3, "deployment": {"resources": resources}}))
        assert ("scaled-without-replicas" in run(str(file)).stdout) is broken


def test_a_document_that_is_no_object_is_searched_for_keys_and_not_judged(tmp_path):
    values = {"channel": {"apiKey": fake_key()}, "spec": deployment(replicas=3)["spec"] | {"selector": {}}}
    write(tmp_path, "a.yaml", thing("ConfigMap", data={"x": "fine"}), values)
    said = json.loads(run(str(tmp_path), "--format", "json").stdout)
    assert [(row["rule"], row["path"]) for row in said["violations"]] == [("no-key-text", "channel.apiKey")]


def pod(**container):
    return thing("Pod", spec={"containers": [{"name": "main", "image": "x", **container}]})


MISSHAPEN = {
    "kind": {"apiVersion": "v1", "kind": 5, "metadata": {"name": "x"}},
    "apiVersion": {"kind": "ConfigMap", "metadata": {"name": "x"}},
    "metadata": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": None},
    "metadata.name": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": 5}},
    "metadata.namespace": thing("ConfigMap", metadata={"namespace": ["x"]}),
    "metadata.labels": thing("ConfigMap", metadata={"labels": "x"}),
    "items": {"apiVersion": "v1", "kind": "List", "items": {"a": 1}},
    "spec": thing("Deployment", spec={"template": {"spec": {"containers": []}}}),
    "spec.containers": thing("Pod", spec={"containers": 5}),
    "spec.containers[0]": thing("Pod", spec={"containers": ["x"]}),
    "spec.template.spec.containers": thing("Job", spec={"template": {"spec": {"containers": {"a": 1}}}}),
    "spec.template.spec.initContainers": thing("Other", spec={"template": {"spec": {"initContainers": 5}}}),
    "spec.volumes": thing("Pod", spec={"volumes": 5, "containers": [{"name": "x"}]}),
    "spec.containers[0].env": pod(env=5),
    "spec.containers[0].env[0]": pod(env=[{"name": "x", "value": 5}]),
    "spec.containers[0].args[0]": pod(args=[5]),
    "spec.containers[0].image": pod(image=5),
    "spec.containers[0].resources": pod(resources=[]),
}


@pytest.mark.parametrize("path", MISSHAPEN)
def test_what_no_api_server_takes_is_a_violation_at_its_path(tmp_path, path):
    result = run(str(write(tmp_path, "a.yaml", MISSHAPEN[path])), "--format", "json")
    found = [row["path"] for row in json.loads(result.stdout)["violations"] if row["rule"] == "manifest-shape"]
    assert (result.exit_code, path in found) == (1, True), result.stdout


def test_an_item_of_a_list_that_is_no_object_is_a_violation(tmp_path):
    listed = {"apiVersion": "v1", "kind": "List", "items": [thing("ConfigMap", data={}), 5]}
    result = run(str(write(tmp_path, "a.yaml", listed)))
    assert (result.exit_code, "manifest-shape" in result.stdout) == (1, True)


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_objects_in_a_bare_list_are_scanned(tmp_path, suffix):
    (tmp_path / f"a.{suffix}").write_text(json.dumps([thing("ConfigMap", "one", data={"x": fake_key()})]))
    result = run(str(tmp_path))
    assert (result.exit_code, "ConfigMap llm/one" in result.stdout) == (1, True)


@pytest.mark.parametrize(
    "body",
    [
        {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": ["x.yaml"]},
        {"apiVersion": "v1", "kind": "Config", "clusters": []},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-", "labels": None}},
        {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": []},
        {"apiVersion": "example.com/v1", "kind": "Other", "metadata": {"name": "x"}, "spec": {"containers": 5}},
    ],
)
def test_files_for_clients_and_other_peoples_kinds_have_no_shape_of_ours(tmp_path, body):
    assert run(str(write(tmp_path, "a.yaml", body, thing("ConfigMap", data={})))).exit_code == 0
