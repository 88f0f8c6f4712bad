"""Up again changes nothing, foreign things survive, and destroy leaves nothing behind. Runs last: it destroys dev."""

import json

from bench.at_once import leaving_at_once
from rules import labels
from tests.real.conftest import DevStack, kubectl, local


def test_a_second_up_changes_nothing(dev_stack: DevStack):
    done = local("pulumi", "up", "--yes", "--skip-preview", "--expect-no-changes", "--non-interactive", check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_destroy_leaves_the_namespace_gone_and_the_node_as_it_was(dev_stack: DevStack):
    kubectl("taint", "node", "local-0", "example.com/foreign=yes:PreferNoSchedule", "--overwrite")
    kubectl("label", "node", "local-0", "example.com/foreign=yes", "--overwrite")
    try:
        with leaving_at_once(dev_stack.namespace):
            local("pulumi", "destroy", "--yes", "--skip-preview", "--non-interactive")
        node = json.loads(kubectl("get", "node", "local-0", "-o", "json"))
        assert not labels.OWN_NODE_LABELS & node["metadata"]["labels"].keys()
        assert node["metadata"]["labels"]["example.com/foreign"] == "yes"
        assert {"key": "example.com/foreign", "value": "yes", "effect": "PreferNoSchedule"} in node["spec"]["taints"]
        assert not kubectl("get", "namespace", dev_stack.namespace, "--ignore-not-found")
    finally:
        kubectl("taint", "node", "local-0", "example.com/foreign-", check=False)
        kubectl("label", "node", "local-0", "example.com/foreign-", check=False)
