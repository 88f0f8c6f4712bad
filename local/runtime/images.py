"""The images of the local cluster: the base root file system, and one layer each of what that image adds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from local import archive
from local.archive import Entry, ImageConfig
from local.progress import Progress
from local.runtime import base, cache, engine, own_packages, python_packages

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FILES = Path(__file__).parents[2] / "images"
"""The launchers; the Containerfiles beside them make the same images for a registry."""


@dataclass(frozen=True)
class Recipe:
    """What an image adds to the base.

    `entries` gives the layer's entries from the folder of the image's Python packages; `packages` names their requirement file.
    """

    command: tuple[str, ...]
    entries: Callable[[Path], list[Entry]]
    packages: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    own_code: str = ""
    """What `entries` takes from this repository, or its digest."""


def names() -> tuple[str, ...]:
    """All images, in the order in which they are built."""
    return tuple(_recipes())


def reference(name: str) -> str:
    """The image's name and tag; the tag changes with everything that goes into the image."""
    return _reference(name, _recipes()[name])


def ensure_layers(name: str, progress: Progress) -> str:
    """Have the layers of the image, and give its reference."""
    recipe = _recipes()[name]
    wanted = _reference(name, recipe)
    base.ensure_layer(progress)
    own = _own_layer(name, wanted)
    if not own.exists():
        folder = python_packages.ensure(recipe.packages, progress) if recipe.packages else base.folder()
        cache.ensure(own, lambda partial: archive.write_layer(partial, recipe.entries(folder)))
        cache.prune(own, f"image-{name}-*.tar")
    return wanted


def built(name: str, reference: str) -> archive.Image:
    """The image of that reference, from the layers that `ensure_layers` left in the cache."""
    recipe = _recipes()[name]
    config = ImageConfig(
        command=recipe.command,
        environment={"PATH": _PATH, "HOME": "/tmp", "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1", **recipe.environment},
        user=f"{base.USER_ID}:{base.USER_ID}",
    )
    return archive.Image(reference, [base.layer(), _own_layer(name, reference)], config)


def _reference(name: str, recipe: Recipe) -> str:
    return f"localhost/moonstack/{name}:{_digest(recipe)}"


def _own_layer(name: str, reference: str) -> Path:
    return cache.runtime_dir() / f"image-{name}-{reference.rpartition(':')[2]}.tar"


def _recipes() -> dict[str, Recipe]:
    return {
        "engine-cpu": Recipe(
            engine.COMMAND,
            _engine_entries,
            environment=_ENGINE_ENVIRONMENT,
            own_code=_text("engine-cpu/vllm") + _text("engine-cpu/sitecustomize.py"),
        ),
        "router": Recipe(
            ("vllm-router",),
            _router_entries,
            "router",
            {"PYTHONPATH": "/opt/router"},
            _text("router/vllm-router"),
        ),
        "mooncake": Recipe(("mooncake_master",), _mooncake_entries, "mooncake"),
        "gateway": Recipe(("envoy",), _gateway_entries, "gateway"),
        "capacity": Recipe(
            ("python3", "-m", "capacity"),
            _capacity_entries,
            "capacity",
            {"PYTHONPATH": "/opt/capacity:/opt/moonstack"},
            own_packages.digest(),
        ),
    }


_HOOKS = "/usr/local/lib/engine"
"""Where Python finds what changes the engine on few cores, in every process that vLLM starts."""

_ENGINE_ENVIRONMENT = {
    "PYTHONPATH": f"{_HOOKS}:{engine.MOUNT_PATH}",
    # vLLM compiles a sampler function when log-probabilities are asked for, and dies without a C++ compiler.
    "TORCHDYNAMO_DISABLE": "1",
}


def _engine_entries(_: Path) -> list[Entry]:
    hook = Entry(f"{_HOOKS}/sitecustomize.py", _FILES / "engine-cpu/sitecustomize.py", mode=0o644)
    return [_launcher("engine-cpu/vllm"), hook]


def _router_entries(packages: Path) -> list[Entry]:
    return [_launcher("router/vllm-router"), *archive.tree(packages, "/opt/router")]


def _mooncake_entries(packages: Path) -> list[Entry]:
    """The master and the store pods' process: the wheel's other programs and its client libraries stay out."""
    libraries = "mooncake_transfer_engine_non_cuda.libs"
    programs = ("mooncake_master", "mooncake_client")
    return [
        *(Entry(f"/usr/local/bin/{name}", link=f"/opt/mooncake/mooncake/{name}") for name in programs),
        *(Entry(f"/opt/mooncake/mooncake/{name}", packages / f"mooncake/{name}", mode=0o755) for name in programs),
        *archive.tree(packages / libraries, f"/opt/mooncake/{libraries}"),
    ]


def _gateway_entries(packages: Path) -> list[Entry]:
    return [Entry("/usr/local/bin/envoy", packages / "envoy/_bin/envoy", mode=0o755)]


def _capacity_entries(packages: Path) -> list[Entry]:
    own = [Entry(f"/opt/moonstack/{path}", source, mode=0o644) for path, source in own_packages.files().items()]
    return [*archive.tree(packages, "/opt/capacity"), *own]


def _launcher(path: str) -> Entry:
    file = _FILES / path
    return Entry(f"/usr/local/bin/{file.name}", file, mode=0o755)


def _text(path: str) -> str:
    return (_FILES / path).read_text()


def _digest(recipe: Recipe) -> str:
    """Changes with this file, the base, the packages, and what the layer takes from the checkout."""
    packages = python_packages.digest(recipe.packages) if recipe.packages else ""
    return cache.key(Path(__file__).read_bytes(), base.digest(), repr(recipe.command), packages, recipe.own_code)
