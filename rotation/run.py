"""Takes the steps of a rotation, one after the other, until nothing is left to do or it is time to wait."""

import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from rotation.plan import World, next_action
from rules.fingerprint import fingerprint
from settings.key_values import Stage, Versions
from settings.keys import KeySettings

PROOF_SECONDS: Final = 180
"""The kubelet takes up to 90 s to bring a changed Secret into a pod (sync period plus cache); twice that."""
_POLL_SECONDS: Final = 2.0


class RotationError(Exception):
    """A rotation can't go on; the message says why and what to do. Nothing is lost: the next run resumes."""


class Store(Protocol):
    """Where versions of keys are kept; each step leaves a state that the next run understands."""

    def read(self, ids: list[str]) -> Mapping[str, Versions]: ...
    def put(self, key_id: str, stage: Stage, value: str) -> None: ...
    def promote(self, key_id: str) -> None: ...
    def drop(self, key_id: str, stage: Stage) -> None: ...
    def changed(self, key_id: str) -> datetime | None: ...


class Cluster(Protocol):
    """The stack as it runs."""

    def fingerprints(self, key: KeySettings) -> Set[str]:
        """The versions that the gateways have."""
        ...

    def kept(self, key: KeySettings) -> Set[str]:
        """The versions that have a Secret of their own."""
        ...

    def deploy(self) -> None: ...
    def unseen_since(self, key: KeySettings, versions: Versions) -> datetime | None:
        """Since when nobody has used the previous version; no earlier than the current one is in the cluster."""
        ...

    def accepted(self, key: KeySettings, value: str, stage: Stage) -> str | None:
        """None if every gateway accepts the value (or the channel, for an outbound key's next); else who doesn't yet."""
        ...


@dataclass
class Rotation:
    """One key's rotation. `fresh` gives the new value; `say` tells the user of each step."""

    key: KeySettings
    store: Store
    cluster: Cluster
    fresh: Callable[[], str]
    say: Callable[[str], None]
    lock: Callable[[Versions], None]
    """Writes the key's versions into keys.lock.json."""
    overlap: timedelta
    force: bool = False
    finish_only: bool = False
    proof_seconds: float = PROOF_SECONDS
    sleep: Callable[[float], None] = time.sleep
    proven: set[str] = field(default_factory=set)

    def run(self) -> bool:
        """True when the rotation is over; False when it waits for the overlap to end. Raises RotationError."""
        begun = self.finish_only
        while True:
            versions = self._versions()
            match next_action(self._world(versions, begun=begun)):
                case "done":
                    self.say("done: one version, accepted by every gateway")
                    return True
                case "wait":
                    self.say(
                        f"both versions are accepted; unless the old one is used again, it goes after {self._end(versions)}:"
                        " run again then, or with --force"
                    )
                    return False
                case "stage":
                    self._stage(versions)
                case "deploy":
                    self.say("deploy: bring the key's versions into the cluster")
                    self.lock(versions)
                    self.cluster.deploy()
                    self.proven.clear()
                    self._expect(versions)
                case "prove":
                    self._prove(versions)
                case "promote":
                    self.say("promote: the new version is the current one")
                    self.store.promote(self.key.id)
                case "drop":
                    self.say("drop: the old version is no longer accepted")
                    self.store.drop(self.key.id, "previous")
            begun = True

    def _versions(self) -> Versions:
        versions = self.store.read([self.key.id]).get(self.key.id)
        if not versions or "current" not in versions:
            raise RotationError(f"key {self.key.id} has no current version; deploy it before rotating it")
        return versions

    def _world(self, versions: Versions, *, begun: bool) -> World:
        return World(
            store={stage: fingerprint(value) for stage, value in versions.items()},
            cluster=self.cluster.fingerprints(self.key),
            kept=self.cluster.kept(self.key),
            proven=frozenset(self.proven),
            outbound=self.key.outbound,
            overlap_over=self.force or self._overlap_is_over(versions),
            begun=begun,
        )

    def _stage(self, versions: Versions) -> None:
        value = self.fresh()
        if value in versions.values():
            raise RotationError("the new value is the old one; get a new key")
        self.say(f"stage: version {fingerprint(value)[:8]} stands beside {fingerprint(versions['current'])[:8]}")
        self.store.put(self.key.id, "next", value)

    def _expect(self, versions: Versions) -> None:
        """The key agent brings the versions into the gateway's list; a deployment that changed nothing would be tried for ever."""
        deadline = time.monotonic() + self.proof_seconds
        while next_action(self._world(versions, begun=True)) == "deploy":
            if time.monotonic() > deadline:
                raise RotationError(
                    "after the deployment the cluster holds other versions than the store; is it the right stack?"
                )
            self.sleep(_POLL_SECONDS)

    def _prove(self, versions: Versions) -> None:
        stage: Stage = "next" if "next" in versions else "current"
        value, deadline = versions[stage], time.monotonic() + self.proof_seconds
        self.say(
            f"prove: version {fingerprint(value)[:8]} at every {'channel' if self.key.outbound and stage == 'next' else 'gateway'}"
        )
        while (laggard := self.cluster.accepted(self.key, value, stage)) is not None:
            if time.monotonic() > deadline:
                raise RotationError(f"{laggard}; nothing was taken away, run again once it is repaired")
            self.sleep(_POLL_SECONDS)
        self.proven.add(fingerprint(value))

    def _overlap_is_over(self, versions: Versions) -> bool:
        """Whether the old version has been unused for the overlap, which begins when it became the old one."""
        since = self._unseen_since(versions)
        return since is not None and datetime.now(UTC) - since >= self.overlap

    def _unseen_since(self, versions: Versions) -> datetime | None:
        if "previous" not in versions or self.key.outbound:
            return None
        moments = (self.store.changed(self.key.id), self.cluster.unseen_since(self.key, versions))
        return max((moment for moment in moments if moment), default=None)

    def _end(self, versions: Versions) -> str:
        since = self._unseen_since(versions)
        return (since + self.overlap).isoformat(timespec="seconds") if since else f"{self.overlap} from now"
