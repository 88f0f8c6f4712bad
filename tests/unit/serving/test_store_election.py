"""Mooncake masters that elect one of them: objects, clients, boundary, and what is refused."""

from typing import Any

from components.kv_store import KvStoreArgs, deployment, engine_store_config, store_environment
from components.pods.engine import engine_container
from components.serving_plan import engine_plans
from settings.boundary import network_policies
from settings.settings import Settings
from tests.unit.components.conftest import IMAGES
from tests.unit.serving.stacks import refused, stack
from tests.unit.serving.test_kthena_objects import CONTEXT

ETCD = ["etcd-0.example:2379", "10.0.0.8:12379"]


def values(**ha: Any) -> dict[str, Any]:
    found = stack()
    found["kvStore"]["ha"] = {"etcd": ETCD, **ha}
    found["network"] = {"etcd": ["10.0.0.0/24"]}
    return found


def settings() -> Settings:
    return Settings.from_mapping(values(masters=3))


def test_masters_elect_under_the_name_by_which_clients_look_for_the_leader():
    args = KvStoreArgs(settings=settings().kv_store, protocol="ascend")
    spec = deployment(args, CONTEXT)["spec"]
    container = spec["template"]["spec"]["containers"][0]
    assert spec["replicas"] == 3 and spec["strategy"]["type"] == "RollingUpdate"
    assert {
        "--enable_ha=true",
        "--etcd_endpoints=etcd-0.example:2379;10.0.0.8:12379",
        "--cluster_id=serving-mooncake-master",
        "--rpc_address=$(POD_IP)",
    } <= set(container["args"])
    assert container["env"][0]["name"] == "POD_IP"
    assert engine_store_config(args, "serving")["master_server_address"] == (
        "etcd://etcd-0.example:2379;10.0.0.8:12379"
    )
    assert store_environment(args, "serving") == {"MC_STORE_CLUSTER_ID": "serving-mooncake-master"}


def test_a_master_that_does_not_lead_is_alive_though_its_rpc_port_is_closed():
    args = KvStoreArgs(settings=settings().kv_store, protocol="ascend")
    container = deployment(args, CONTEXT)["spec"]["template"]["spec"]["containers"][0]
    assert container["livenessProbe"]["httpGet"]["port"] == "metrics"


def test_without_election_there_is_one_master_behind_its_service():
    args = KvStoreArgs(settings=Settings.from_mapping(stack()).kv_store, protocol="ascend")
    spec = deployment(args, CONTEXT)["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert engine_store_config(args, "serving")["master_server_address"].startswith("mooncake-master.serving.svc")
    assert store_environment(args, "serving") == {}


def test_engines_that_join_a_store_are_told_its_name_and_others_are_not():
    told = {
        plan.role + plan.pool.name: variables.get("MC_STORE_CLUSTER_ID")
        for plan in engine_plans(settings(), IMAGES, None, "pre")
        for variables in [{each["name"]: each.get("value") for each in engine_container(plan.pod)["env"]}]
    }
    assert told["prefillnpu"] == told["decodenpu"] == "serving-mooncake-master"
    alone = values()
    alone["kvStore"]["enabled"] = False
    plans = engine_plans(Settings.from_mapping(alone), IMAGES, None, "pre")
    assert not any("MC_STORE_CLUSTER_ID" in repr(engine_container(plan.pod)) for plan in plans)


def test_masters_and_engines_reach_the_etcd_and_nobody_else_does():
    reaching = {
        name
        for name, spec in network_policies(settings()).items()
        for rule in spec.get("egress", ())
        if {"ipBlock": {"cidr": "10.0.0.0/24"}} in rule["to"] and [p["port"] for p in rule["ports"]] == [2379, 12379]
    }
    assert reaching == {"allow-kv-store", "allow-engine"}


def test_an_etcd_behind_the_boundary_without_addresses_is_refused():
    closed = values()
    del closed["network"]
    assert refused(closed, "network.etcd", "etcd-0.example:2379", "give its addresses")
    open_ = closed | {"network": {"enabled": False}}
    assert Settings.from_mapping(open_).kv_store.ha


def test_an_etcd_is_host_and_port_and_one_master_is_no_election():
    assert refused(values(masters=1), "kvStore.ha.masters", "2")
    wrong = values()
    wrong["kvStore"]["ha"]["etcd"] = ["http://etcd:2379"]
    assert refused(wrong, "kvStore.ha.etcd[0]", "http://etcd:2379")
    wrong["kvStore"]["ha"]["etcd"] = []
    assert refused(wrong, "kvStore.ha", "name at least one host:port")
