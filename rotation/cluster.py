"""The stack as it runs, seen by a rotation: which versions it holds, and what each gateway pod accepts."""

import base64
import ssl
import subprocess
from collections.abc import Iterator, Sequence, Set
from datetime import datetime
from typing import Any, Final

import httpx
import kr8s

from rotation.run import RotationError
from rules import labels, names
from rules.envoy_keys import FILE, client_keys
from rules.fingerprint import fingerprint
from rules.key_use import last_use
from settings.key_values import Stage, Versions
from settings.keys import KeySettings
from settings.paths import state_dir
from settings.settings import Settings
from settings.temporary import environment, private_folder

_MODELS: Final = "/v1/models"
_TIMEOUT: Final = httpx.Timeout(10)


class LiveCluster:
    """One stack's gateway and its Secrets; `pulumi` is the command that runs Pulumi on the stack."""

    def __init__(self, settings: Settings, pulumi: Sequence[str]) -> None:
        self._settings = settings
        self._pulumi = tuple(pulumi)
        where = settings.cluster
        private_folder()
        try:
            self._api: Any = kr8s.api(
                kubeconfig=where.kubeconfig_path, context=where.context, namespace=where.namespace
            )
        except Exception as error:  # whatever a broken kubeconfig makes kr8s raise
            raise RotationError(f"the cluster could not be reached ({type(error).__name__})") from None

    def fingerprints(self, key: KeySettings) -> Set[str]:
        """The versions of a key in the Secret that the gateways mount."""
        if key.outbound:
            data = self._secret(names.CHANNEL_KEYS)
            return {fingerprint(data[key.id])} if key.id in data else set()
        text = self._secret(names.CLIENT_KEYS).get(FILE)
        return {fingerprint(entry.value) for entry in client_keys(text) if entry.id == key.id} if text else set()

    def kept(self, key: KeySettings) -> Set[str]:
        """The versions of a key that have a Secret of their own, as its annotation names them."""
        found = self._api.get("secrets", label_selector={labels.KEY_ID: key.id})
        annotations = [secret.raw["metadata"].get("annotations") or {} for secret in found]
        return {one[labels.KEY_FINGERPRINT] for one in annotations if labels.KEY_FINGERPRINT in one}

    def deploy(self) -> None:
        """`pulumi up` on the stack, its output to the user. Raises RotationError if it fails."""
        done = subprocess.run([*self._pulumi, "up", "--yes"], env=environment(), check=False)
        if done.returncode:
            raise RotationError(
                f"pulumi up ended with exit {done.returncode}; nothing was taken away, run again once it is repaired"
            )

    def unseen_since(self, key: KeySettings, versions: Versions) -> datetime | None:
        """When the previous version was used last, as the key agent saw it, or since when the current one is in the cluster.

        Raises RotationError while the agent is away, since then nobody watches. Without an agent only the time counts.
        """
        current = self._created("secrets", names.key_version(key.id, fingerprint(versions["current"])))
        if not self._settings.keys.agent:
            return current
        if not any(pod.ready() for pod in self._pods(names.KEY_AGENT)):
            raise RotationError(
                "the key agent is not ready, so nobody sees whether the old version is in use; repair it, or use --force"
            )
        found = list(self._api.get("configmaps", names.KEY_AGENT))
        used = last_use(found[0].raw.get("data") or {}, key.id, versions["previous"]) if found else None
        return max((moment for moment in (current, used) if moment), default=None)

    def accepted(self, key: KeySettings, value: str, stage: Stage) -> str | None:
        """None once everyone who has to accepts the value; else who doesn't yet."""
        if key.outbound and stage == "next":
            return self._channel_refuses(value)
        for pod in self._gateways():
            if key.outbound:
                if self._mounted_channel_key(pod, key) != fingerprint(value):
                    return f"pod {pod.name} has not got the new channel key yet"
            elif (status := self._ask(pod, value)) != 200:
                return f"pod {pod.name} answers {status} to the new key"
        return None

    def _channel_refuses(self, value: str) -> str | None:
        url = f"{str(self._settings.channel.base_url).rstrip('/')}{_MODELS}"
        try:
            status = httpx.get(url, headers={"authorization": f"Bearer {value}"}, timeout=_TIMEOUT).status_code
        except httpx.HTTPError as error:
            return f"the channel could not be asked ({type(error).__name__})"
        return None if status == 200 else f"the channel answers {status} to the new key"

    def _ask(self, pod: Any, value: str) -> int | str:
        host, tls = self._settings.gateway.tls.server_name, self._settings.gateway.tls.source != "none"
        try:
            with pod.portforward(remote_port=self._settings.gateway.http_port, local_port="auto") as port:
                with httpx.Client(verify=self._trust(), timeout=_TIMEOUT, trust_env=False) as client:
                    headers = {"authorization": f"Bearer {value}", "host": host}
                    url = f"{'https' if tls else 'http'}://127.0.0.1:{port}{_MODELS}"
                    return client.get(
                        url, headers=headers, extensions={"sni_hostname": host} if tls else {}
                    ).status_code
        except (httpx.HTTPError, kr8s.ConnectionClosedError, OSError) as error:
            return type(error).__name__

    def _trust(self) -> ssl.SSLContext:
        if self._settings.gateway.tls.source == "localCa":
            return ssl.create_default_context(cafile=str(state_dir() / "gateway" / "ca.crt"))
        return ssl.create_default_context()

    def _mounted_channel_key(self, pod: Any, key: KeySettings) -> str:
        """The fingerprint of the file as the pod sees it; Envoy watches that folder."""
        done = pod.exec(["cat", f"/etc/moonstack/channel/{key.id}"], check=False)
        return fingerprint(done.stdout.decode().strip()) if done.returncode == 0 else ""

    def _gateways(self) -> Iterator[Any]:
        """Every gateway pod that serves. Raises RotationError when there is none."""
        found = [pod for pod in self._pods(names.GATEWAY) if pod.ready()]
        if not found:
            raise RotationError("no gateway pod is ready; repair the gateway first")
        yield from found

    def _pods(self, app: str) -> Iterator[Any]:
        return self._api.get("pods", label_selector={"app.kubernetes.io/name": app})

    def _created(self, kind: str, name: str) -> datetime | None:
        for one in self._api.get(kind, name):
            return datetime.fromisoformat(one.raw["metadata"]["creationTimestamp"])
        return None

    def _secret(self, name: str) -> dict[str, str]:
        for secret in self._api.get("secrets", name):
            return {key: base64.b64decode(value).decode() for key, value in (secret.raw.get("data") or {}).items()}
        return {}
