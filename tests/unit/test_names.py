"""Names of Kubernetes objects."""

import re

from hypothesis import given
from hypothesis import strategies as st

from rules import names

LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


@given(st.text(min_size=1, max_size=127), st.sampled_from(names.ROLES), st.text(min_size=1, max_size=63))
def test_every_engine_and_warm_name_is_a_dns_label(model: str, role: str, pool: str):
    for name in (names.engine(model, role, pool), names.warm(model, role, pool), names.router(model)):
        assert len(name) <= 63
        assert LABEL.fullmatch(name)
    assert len(f"{names.engine(model, role, pool)}-{'f' * 10}-") <= 58, "the API server cuts longer names of pods"
    set_id = "f" * names.SET_DIGITS
    for name in (names.engine(model, role, pool, set_id), names.router_set(model, set_id)):
        assert LABEL.fullmatch(name) and name.endswith(f"-{set_id}")
        assert len(f"{name}-{'f' * 10}-") <= 58, "the API server cuts longer names of pods"


def test_the_longest_names_leave_room_for_the_set_and_the_pods():
    set_id = "f" * names.SET_DIGITS
    longest = [names.engine("m" * 32, role, "p" * 32, set_id) for role in names.ROLES]
    for name in (*longest, names.router_set("m" * 32, set_id), names.engine("m" * 20, "prefill", "p" * 14, set_id)):
        assert len(f"{name}-{'f' * 10}-") <= 58 and name.endswith(f"-{set_id}"), name


def test_pools_and_models_that_begin_alike_have_deployments_of_their_own():
    pools = [f"ascend-910b-zone-east-{letter}" for letter in "ab"]
    models = [f"deepseek-v3-production-model-{letter}" for letter in "ab"]
    assert len({names.engine(model, "prefill", pool) for model in models for pool in pools}) == 4
    assert names.engine("dev-wide", "prefill", "ascend") == "dev-wide-prefill-ascend"


@given(st.text(min_size=1, max_size=60), st.text(min_size=1, max_size=60))
def test_two_models_never_share_a_slug(one: str, other: str):
    assert (names.slug(one) == names.slug(other)) == (one == other)


def test_a_plain_name_stays_as_it_is():
    assert names.slug("dev-wide") == "dev-wide"


def test_case_and_dots_are_kept_apart_by_a_digest():
    assert names.slug("DeepSeek-V3.2") != names.slug("deepseek-v3-2")
