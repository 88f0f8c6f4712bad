"""Drills on a model of Kthena: its roles are changed in place, and it is back when all of every group is."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from rules import labels
from rules.kthena import ENTRY_LABEL, ROLE_LABEL, SERVING_LABEL
from smoke.cluster import Reply
from smoke.drills import needs
from smoke.drills.catalogue import CATALOGUE
from smoke.drills.drill import Ground
from smoke.drills.hands import Hands
from smoke.drills.serving import ServingRole, whole
from smoke.errors import PermanentError
from smoke.probe import LiveStack
from tests.unit.smoke.fakes import MODEL, dev_settings


class Kthena:
    """A ModelServing whose pods take some looks to follow it, in the API's shapes."""

    namespace = "moonstack-dev"

    def __init__(self, groups: int = 2, prefill: int = 1) -> None:
        roles = [
            {"name": role, "replicas": count, "entryTemplate": {"metadata": {"annotations": {"kept": "yes"}}}}
            for role, count in (("prefill", prefill), ("decode", 1))
        ]
        self.serving: dict[str, Any] = {
            "metadata": {"name": MODEL, "generation": 1},
            "spec": {"replicas": groups, "template": {"roles": roles}},
            "status": {"observedGeneration": 1, "conditions": [{"type": "Available", "status": "True"}]},
        }
        self.round = self.looks = 0
        self.calls: list[tuple[str, str, str]] = []
        self.evicted: list[str] = []
        self.there = self._pods()

    def _pods(self) -> list[dict[str, Any]]:
        state = {"conditions": [{"type": "Ready", "status": "True"}]}
        found = []
        for group in range(self.serving["spec"]["replicas"]):
            for role in self.serving["spec"]["template"]["roles"]:
                for index in range(role["replicas"]):
                    name = f"{MODEL}-{group}-{role['name']}-{index}-0"
                    own = {SERVING_LABEL: MODEL, ROLE_LABEL: role["name"], ENTRY_LABEL: "true"}
                    own |= {labels.MODEL: MODEL, labels.ROLE: role["name"]}
                    meta = {"name": name, "uid": f"{name}-{self.round}", "labels": own}
                    found.append({"metadata": meta, "status": state})
        return found

    def path(self, resource: str, name: str = "", group: str = "") -> str:
        return f"/{resource}/{name}".rstrip("/")

    async def items(self, path: str, selector: Any = None) -> list[Any]:
        return []

    async def get(self, path: str) -> Any:
        if path.startswith("/pods/"):
            return next((pod for pod in self.there if path.endswith(pod["metadata"]["name"])), None)
        self.looks += 1
        if self.looks % 4 == 0:  # the controller catches up
            self.serving["status"]["observedGeneration"] = self.serving["metadata"]["generation"]
            self.there = self._pods()
        return copy.deepcopy(self.serving)

    async def pods(self, selector: dict[str, str]) -> list[Any]:
        return [pod for pod in self.there if selector.items() <= pod["metadata"]["labels"].items()]

    async def call(self, method: str, path: str, *, params: Any = None, body: Any = None, kind: str = "") -> Reply:
        self.calls.append((method, path, kind))
        if path.endswith("/eviction"):
            uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.there}
            now = uids.get(path.split("/")[2])
            if now is None:
                return Reply(404, "{}")
            if body.get("deleteOptions", {}).get("preconditions", {}).get("uid", now) != now:
                return Reply(409, "{}")
            self.evicted.append(now)
        if method == "PATCH":
            self._apply(body)
            self.serving["metadata"]["generation"] += 1
        self.round += 1
        return Reply(200, "{}")

    def _apply(self, patch: list[dict[str, Any]]) -> None:
        for step in patch:
            *parents, last = step["path"].strip("/").split("/")
            place: Any = self.serving
            for part in parents:
                place = place[int(part)] if part.isdigit() else place[part]
            place[last] = step["value"]


def hands(cluster: Kthena) -> Hands:
    return Hands(cluster, patience=5, pause=0)  # type: ignore[arg-type]


async def test_a_role_is_scaled_in_the_list_of_roles_and_waited_for():
    cluster = Kthena(prefill=2)
    role = await hands(cluster).engines(MODEL, "prefill")
    assert isinstance(role, ServingRole)
    assert (role.groups, role.replicas) == (2, 2)
    await hands(cluster).scale(role, 1)
    assert cluster.calls == [("PATCH", f"/modelservings/{MODEL}", "application/json-patch+json")]
    assert len(await hands(cluster).pods_of(role)) == 2, "one in each group"


async def test_a_restart_waits_until_no_old_pod_of_the_role_is_left_and_keeps_what_was_annotated():
    cluster = Kthena()
    role = await hands(cluster).engines(MODEL, "decode")
    old = {pod["metadata"]["uid"] for pod in cluster.there}
    await hands(cluster).restart(role)
    assert not old & {pod["metadata"]["uid"] for pod in cluster.there}
    annotations = cluster.serving["spec"]["template"]["roles"][1]["entryTemplate"]["metadata"]["annotations"]
    assert annotations.keys() == {"kept", "kubectl.kubernetes.io/restartedAt"}


async def test_an_engine_that_went_with_its_group_needs_no_eviction():
    cluster = Kthena()
    gone = copy.deepcopy(cluster.there[0])
    gone["metadata"] |= {"name": "gone", "uid": "gone"}
    await hands(cluster).evict([gone, cluster.there[0]])
    assert [path for _, path, _ in cluster.calls] == ["/pods/gone/eviction", f"/pods/{MODEL}-0-prefill-0-0/eviction"]


async def test_a_pod_that_was_made_anew_under_the_same_name_is_not_evicted_for_the_old_one():
    cluster = Kthena()
    old = copy.deepcopy(cluster.there[0])
    old["metadata"]["uid"] = "before"
    await hands(cluster).evict([old, cluster.there[2]])
    assert cluster.evicted == [f"{MODEL}-1-prefill-0-0-0"]


async def test_a_model_that_is_nowhere_is_said_to_be_nowhere():
    cluster = Kthena()
    cluster.serving = None  # type: ignore[assignment]
    cluster.get = lambda path: _none()  # type: ignore[method-assign]
    with pytest.raises(PermanentError, match="neither a Deployment nor a ModelServing"):
        await hands(cluster).engines(MODEL, "prefill")


async def _none() -> None:
    return None


@pytest.mark.parametrize(
    ("change", "is_whole"),
    [
        (lambda s, p: None, True),
        (lambda s, p: s["metadata"].update(generation=2), False),
        (lambda s, p: s["status"].update(conditions=[{"type": "Available", "status": "False"}]), False),
        (lambda s, p: s.pop("status"), False),
        (lambda s, p: p.pop(), False),
        (lambda s, p: p.append(p[0]), False),
        (lambda s, p: p[0].update(status={}), False),
        (lambda s, p: s["spec"]["template"]["roles"][0].update(workerReplicas=1), False),
    ],
)
def test_a_serving_is_whole_only_when_it_is_seen_available_and_complete(change: Any, is_whole: bool):
    cluster = Kthena()
    pods = list(cluster.there)
    change(cluster.serving, pods)
    assert whole(cluster.serving, pods) == is_whole


@pytest.mark.parametrize("name", ["roll-decode", "roll-prefill", "kill-engine", "drain-engines"])
async def test_a_group_that_is_alone_is_not_taken_where_nobody_else_answers(live: LiveStack, name: str):
    drill = next(drill for drill in CATALOGUE if drill.name == name)
    for groups, wanted in ((1, "set groups of dev-wide to 2 or more"), (2, "")):
        said = await drill.needs(place(live, Kthena(groups)))
        assert wanted in (said or "")
        assert bool(said) == bool(wanted)


async def test_an_engine_is_scaled_away_only_where_its_group_keeps_one(live: LiveStack):
    assert "set prefill.replicas of dev-wide to 2" in (await needs.one_to_spare(place(live, Kthena())) or "")
    assert await needs.one_to_spare(place(live, Kthena(prefill=2))) is None


def place(live: LiveStack, cluster: Kthena) -> Ground:
    return Ground(live=replace(live, settings=dev_settings()), hands=hands(cluster), model=MODEL)
