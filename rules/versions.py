"""The matrix of versions that belong together; settings, Containerfiles, `make images` and the documentation all read it.

Source: vllm-project/vllm-ascend, versioning policy and Dockerfiles; the packages' own metadata.
"""

from dataclasses import dataclass
from typing import Final

from rules.chips import Arch
from rules.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineVersions:
    """One engine image: what is pinned in it, and for which architectures its parts exist."""

    image: str
    vllm: str
    mooncake_package: str
    mooncake: str
    architectures: tuple[Arch, ...]
    vllm_ascend: str | None = None
    cann: str | None = None
    base: str | None = None
    """The image it is built on, where there is one; else Debian."""


ENGINES: Final[dict[str, EngineVersions]] = {
    each.image: each
    for each in (
        EngineVersions(
            image="engine-ascend",
            vllm="0.23.0",
            vllm_ascend="0.23.0",
            cann="9.1.0",
            mooncake_package="mooncake-transfer-engine-npu",
            mooncake="0.3.11.post1",
            architectures=("arm64", "amd64"),
            base="quay.io/ascend/vllm-ascend:v0.23.0",
        ),
        EngineVersions(
            image="engine-nvidia",
            vllm="0.32.0",
            mooncake_package="mooncake-transfer-engine",
            mooncake="0.3.13.post1",
            architectures=("amd64",),
            base="docker.io/vllm/vllm-openai:v0.32.0",
        ),
        EngineVersions(
            image="engine-cpu",
            vllm="0.32.0",
            mooncake_package="mooncake-transfer-engine-non-cuda",
            mooncake="0.3.13.post1",
            architectures=("amd64",),
        ),
    )
}
OWN_ARCHITECTURES: Final[tuple[Arch, ...]] = ("amd64", "arm64")
"""Of the images without an engine: gateway, router, mooncake, capacity; their wheels exist for these two."""


def runs_on(path: str, pool: str, arch: Arch, image: str) -> list[Problem]:
    """An image whose parts don't exist for the nodes' architecture can't be built for them: its pods would never start."""
    there = ENGINES[image].architectures if image in ENGINES else OWN_ARCHITECTURES
    if arch in there:
        return []
    limit = f"its nodes are {arch}, and the parts of image {image} exist for {', '.join(there)}"
    return [Problem(path, pool, limit, "choose a pool of that architecture")]


ROUTER: Final = "0.1.17"
"""vllm-router (native backend)."""
KTHENA: Final = {"0.4": "v0.4.0", "1.0": "v1.0.0"}
"""Setting → the release that the objects are built and tested for."""
