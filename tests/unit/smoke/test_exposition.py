"""Metrics keep the names that their programs gave them."""

from smoke.engines import sums
from smoke.exposition import samples

PAGE = """# TYPE envoy_cluster_upstream_cx_connect_fail counter
envoy_cluster_upstream_cx_connect_fail{envoy_cluster_name="channel"} 8
# TYPE vllm:prefix_cache_hits counter
vllm:prefix_cache_hits_total{engine="0"} 3
vllm:prefix_cache_hits_total{engine="1"} 4
# HELP envoy_server_live with "quotes" {and} brackets
# TYPE envoy_server_live gauge
envoy_server_live{} 1
"""


def test_a_counter_without_the_usual_ending_is_found_under_its_own_name():
    names = ["envoy_cluster_upstream_cx_connect_fail", *["vllm:prefix_cache_hits_total"] * 2, "envoy_server_live"]
    assert [sample.name for sample in samples(PAGE)] == names


def test_label_sets_are_summed():
    assert sums(PAGE)["vllm:prefix_cache_hits_total"] == 7
    assert sums(PAGE)["envoy_cluster_upstream_cx_connect_fail"] == 8
