"""What smoke compares with the stack file is declared with every stack, by the same digest."""

import json
import runpy

import pulumi
import pytest

from rules import names
from settings.content import content_digest
from settings.settings import Settings
from tests.policies.test_clean_stacks import ROOT, state, values
from tests.unit.pulumi_engine import plain, run

__all__ = ["state"]


@pytest.mark.parametrize("stack", ["dev", "pre", "prod"])
def test_the_digest_is_that_of_the_settings(stack: str):
    groups = values(stack, "native")
    pulumi.runtime.set_all_config({f"moonstack:{key}": json.dumps(value) for key, value in groups.items()}, [])
    made = run(lambda: runpy.run_path(str(ROOT / "__main__.py")), stack=stack)
    (config_map,) = [plain(one.inputs) for one in made if one.name.endswith(names.DEPLOYED_CONTENT)]
    assert config_map["data"][names.CONTENT_KEY] == content_digest(Settings.from_mapping(groups))
