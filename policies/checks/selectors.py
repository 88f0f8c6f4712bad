"""Whatever selects or names something finds it, and no two workloads select each other's pods."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policies.checks.replicas import WORKLOADS, target
from policies.objects import Object
from policies.rule import UNDECIDED, Facts, Finding, Rule, guarded
from policies.unknown import Undecided, text
from rules import kthena

_OWNERS: Final = ("Deployment", "StatefulSet", "DaemonSet")


def selectors_find_pods(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """Every Service, budget and workload selector matches pods of this stack; each scaler's target is declared."""
    pods: list[tuple[str, Mapping[str, Any]]] = []
    hidden: list[Object] = []
    for one in objects:
        try:
            pods += [(one.namespace, _known(pod.labels)) for pod in one.pods]
        except Undecided:
            hidden.append(one)
    hidden += [one for one in objects if one.unknown_pods]
    named = _Named(objects)
    for one in objects:
        yield from guarded(_finds(one, pods, hidden), one)
        yield from guarded(_has_target(one, named), one)


def kthena_names_exist(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """A ModelServer selects a declared ModelServing and its roles; a ModelRoute names declared ModelServers."""
    named = _Named(objects)
    for one in objects:
        if one.kind == "ModelServer":
            yield from guarded(_server(one, named), one)
        elif one.kind == "ModelRoute":
            yield from guarded(_route(one, named), one)


def selectors_are_disjoint(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """No workload's selector matches another's pods: they would fight over them."""
    owners = [one for one in objects if one.kind in _OWNERS]
    labelled: dict[tuple[str, str, str], list[Object]] = {}
    for one in owners:
        yield from guarded(_index(one, labelled), one)
    for one in owners:
        yield from guarded(_overlaps(one, labelled), one)


class _Named:
    """Objects by namespace, kind and name; one whose name a preview doesn't know may be any of its kind."""

    def __init__(self, objects: Sequence[Object]) -> None:
        self._found: dict[tuple[str, str, str], Object] = {}
        self._unnamed: set[str] = set()
        for one in objects:
            try:
                self._found.setdefault((one.namespace, one.kind, one.name), one)
            except Undecided:
                self._unnamed.add(one.kind)

    def get(self, namespace: str, kind: str, name: str, path: str) -> Object | None:
        """The object that `path` refers to. Raises Undecided for one that is not found and may be there."""
        found = self._found.get((namespace, kind, name))
        if found is None and kind in self._unnamed:
            raise Undecided(path)
        return found


def _finds(one: Object, pods: Sequence[tuple[str, Mapping[str, Any]]], hidden: Sequence[Object]) -> Iterator[Finding]:
    path, selector = _selector(one)
    if selector and not any(one.namespace == space and _matches(selector, labels) for space, labels in pods):
        if any(other.space in (None, one.namespace) for other in hidden):
            yield Finding(one, path, UNDECIDED, undecided=True)
        else:
            yield Finding(one, path, "matches no pod of this stack; correct the labels")


def _known(labels: Mapping[str, Any]) -> Mapping[str, Any]:
    """Labels, all of them known. Raises Undecided."""
    return {key: text(value) for key, value in labels.items()}


def _selector(one: Object) -> tuple[str, Mapping[str, Any]]:
    spec = one.body.get("spec") or {}
    if one.kind == "Service":
        return "spec.selector", spec.get("selector") or {}
    if one.kind in ("PodDisruptionBudget", *_OWNERS):
        return "spec.selector.matchLabels", (spec.get("selector") or {}).get("matchLabels") or {}
    return "", {}


def _has_target(one: Object, named: _Named) -> Iterator[Finding]:
    found = target(one)
    if found and found[1] in WORKLOADS and named.get(*found, "spec.scaleTargetRef") is None:
        yield Finding(one, "spec.scaleTargetRef", f"{found[1]} {found[2]} is not declared")


def _server(one: Object, named: _Named) -> Iterator[Finding]:
    selector = one.body["spec"]["workloadSelector"]
    name = text((selector.get("matchLabels") or {}).get(kthena.SERVING_LABEL))
    path = "spec.workloadSelector.matchLabels"
    serving = named.get(one.namespace, "ModelServing", name, path) if name else None
    if name and serving is None:
        yield Finding(one, path, f"selects ModelServing {name}, which is not declared")
        return
    roles = {text(role["name"]) for role in serving.body["spec"]["template"]["roles"]} if serving else set()
    for side in ("prefillLabels", "decodeLabels"):
        role = text(((selector.get("pdGroup") or {}).get(side) or {}).get(kthena.ROLE_LABEL))
        if role and roles and role not in roles:
            path = f"spec.workloadSelector.pdGroup.{side}"
            yield Finding(one, path, f"selects role {role}; ModelServing {name} has {', '.join(sorted(roles))}")


def _route(one: Object, named: _Named) -> Iterator[Finding]:
    for index, rule in enumerate(one.body["spec"].get("rules") or ()):
        for position, model in enumerate(rule.get("targetModels") or ()):
            path = f"spec.rules[{index}].targetModels[{position}].modelServerName"
            if named.get(one.namespace, "ModelServer", name := text(model.get("modelServerName")), path) is None:
                yield Finding(one, path, f"ModelServer {name} is not declared")


def _index(one: Object, labelled: dict[tuple[str, str, str], list[Object]]) -> Iterator[Finding]:
    for pod in one.pods:
        for key, value in pod.labels.items():
            labelled.setdefault((one.namespace, key, text(value)), []).append(one)
    yield from ()


def _overlaps(one: Object, labelled: Mapping[tuple[str, str, str], Sequence[Object]]) -> Iterator[Finding]:
    path, selector = _selector(one)
    rarest = min(
        (labelled.get((one.namespace, key, text(value)), ()) for key, value in selector.items()), key=len, default=()
    )
    for other in rarest:
        if other is not one and any(_matches(selector, pod.labels) for pod in other.pods):
            yield Finding(one, path, f"matches the pods of {other.ref} too; add a label that tells them apart")


def _matches(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    return all(text(labels.get(key)) == text(value) for key, value in selector.items())


RULES: Final = (
    Rule(
        id="selectors-match",
        concern="serving",
        severity="high",
        description="Service, budget, workload and scaler point at something that is declared.",
        all=selectors_find_pods,
    ),
    Rule(
        id="kthena-names-match",
        concern="serving",
        severity="high",
        description="ModelServer and ModelRoute point at something that is declared.",
        all=kthena_names_exist,
    ),
    Rule(
        id="selectors-disjoint",
        concern="scaling",
        severity="high",
        description="No workload's selector matches the pods of another.",
        all=selectors_are_disjoint,
        reads_pods=True,
    ),
)
