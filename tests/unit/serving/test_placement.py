"""Whether pods fit on pools: whole chips, never split over nodes, and no more CPU and memory than a node has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.placement import Demand, nodes_needed, over_capacity
from tests.unit.serving.stacks import accepted, refused, stack


def one_by_one(demands: list[Demand], chips_per_node: int) -> int:
    """The plain way: each pod into the first node with room."""
    free: list[int] = []
    for chips in sorted((d.chips for d in demands for _ in range(d.pods)), reverse=True):
        node = next((index for index, room in enumerate(free) if room >= chips), None)
        if node is None:
            free.append(chips_per_node - chips)
        else:
            free[node] -= chips
    return len(free)


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from([1, 2, 4, 8])), max_size=6), st.sampled_from([8, 16, 32]))
def test_counting_nodes_agrees_with_placing_each_pod(sizes: list[tuple[int, int]], chips_per_node: int):
    demands = [Demand("models[0]", "pool", pods, chips) for pods, chips in sizes]
    assert nodes_needed(demands, chips_per_node) == one_by_one(demands, chips_per_node)


def test_a_pod_is_never_split_over_nodes():
    found = over_capacity([Demand("models[0].serve[0].chips", "pool", 3, 4)], "pool", 2, 6)
    assert "they need 3 nodes of 6 chips; pool pool has 2" in found[0].limit
    assert over_capacity([Demand("models[0].serve[0].chips", "pool", 2, 4)], "pool", 2, 6) == []


def test_a_million_pods_are_counted_at_once():
    assert nodes_needed([Demand("p", "pool", 1_000_000, 4)], 8) == 500_000


@pytest.mark.parametrize(("name", "value", "node"), [("memory", "65Gi", "64Gi"), ("cpu", "8500m", "8")])
def test_a_pod_that_asks_for_more_than_a_node_has_is_refused(name: str, value: str, node: str):
    values = stack()
    values["models"][1]["decode"][name] = value
    assert refused(values, f"models[1].decode[0].{name}", value, f"({node})", f"nodePools[1].{name}")


def test_a_pod_that_takes_a_whole_node_is_accepted():
    values = stack()
    values["models"][1]["decode"] |= {"memory": "64Gi", "cpu": "8"}
    assert accepted(values)


@pytest.mark.parametrize("chip", ["huawei.com/Ascend910", "nvidia.com/gpu"])
def test_a_resource_of_chips_is_none_of_rdma(chip: str):
    values = stack()
    values["nodePools"][0]["rdmaResource"] = chip
    assert refused(values, "nodePools[0].rdmaResource", chip, "is the resource of", "rdma/hca_shared_devices_a")
    values["nodePools"][0]["rdmaResource"] = "rdma/hca_shared_devices_a"
    assert accepted(values)
