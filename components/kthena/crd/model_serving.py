"""ModelServing: groups of roles, each role a pod template. The CRD is the same in 0.4 and 1.0 for what is written here."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from components.kthena.crd.base import KubernetesObject, Part
from rules import kthena

RoleName = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=kthena.ROLE_LIMIT)]


class TemplateMetadata(Part):
    """Labels and annotations of a role's pods; Kthena adds its own, and a template's would overwrite them."""

    labels: dict[str, str]
    annotations: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _kthenas_own_keys_stay_out(self) -> "TemplateMetadata":
        for key in (*self.labels, *self.annotations):
            if key.startswith(kthena.OWNED_PREFIXES):
                raise ValueError(f"{key} belongs to Kthena's controller")
        return self


class PodTemplate(Part):
    """A pod template; the spec is built by components/pods."""

    metadata: TemplateMetadata
    spec: dict[str, Any]


class Role(Part):
    """One role: `replicas` engines, each of one entry pod and `worker_replicas` more."""

    name: RoleName
    replicas: int = Field(ge=1)
    worker_replicas: int = Field(ge=0)
    entry_template: PodTemplate
    worker_template: PodTemplate | None = None

    @model_validator(mode="after")
    def _workers_have_a_template(self) -> "Role":
        if (self.worker_template is not None) != (self.worker_replicas > 0):
            raise ValueError("workerTemplate is given if and only if workerReplicas is above 0")
        return self


class GangPolicy(Part):
    """Engines of each role that must fit before any starts; immutable once set. Left out, Kthena takes all replicas."""

    min_role_replicas: dict[str, int]


class TopologyPolicy(Part):
    """How far apart in Volcano's HyperNode tree pods may be."""

    mode: Literal["hard", "soft"] = "hard"
    highest_tier_allowed: int = Field(ge=0)


class NetworkTopology(Part):
    """Topology of a whole group."""

    group_policy: TopologyPolicy


class ServingGroup(Part):
    """The template of a serving group."""

    restart_grace_period_seconds: int = Field(ge=0)
    gang_policy: GangPolicy | None = None
    network_topology: NetworkTopology | None = None
    roles: tuple[Role, ...] = Field(min_length=1, max_length=4)


class RollingUpdate(Part):
    """There is no surge in any release."""

    max_unavailable: int = Field(default=1, ge=1)
    partition: int = Field(default=0, ge=0)


class RolloutStrategy(Part):
    """Written out: left out, 0.4 deletes every outdated role of a group at once (volcano-sh/kthena#1188)."""

    type: Literal["ServingGroupRollingUpdate"] = "ServingGroupRollingUpdate"
    rolling_update_configuration: RollingUpdate = RollingUpdate()


class ModelServingSpec(Part):
    """The specification; every default of the CRD is written out."""

    replicas: int = Field(ge=1)
    scheduler_name: Literal["volcano", "default-scheduler"]
    recovery_policy: Literal["RoleRecreate", "ServingGroupRecreate", "None"]
    rollout_strategy: RolloutStrategy = RolloutStrategy()
    template: ServingGroup


class ModelServing(KubernetesObject):
    """The engines of one model."""

    api_version: str = kthena.WORKLOAD
    kind: str = "ModelServing"
    spec: ModelServingSpec
