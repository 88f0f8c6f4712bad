"""What the local cluster's pods run: images without a registry, the CPU engine's environment, development models."""

from pathlib import Path

from local import state
from local.progress import Progress
from local.runtime import containerd, engine, images, models
from settings.local_runtime import FILE, DevelopmentModel, HostEngine, LocalRuntime


def image(name: str) -> str:
    """The reference of one of `images.names()`, such as `localhost/moonstack/router:0123456789ab`.

    Raises KeyError for another name.
    """
    return images.reference(name)


def ensure(progress: Progress) -> LocalRuntime:
    """Have every image layer, the engine's environment and the models, and write what the stacks need to `images.json`.

    Takes minutes and 10 GB the first time, two seconds later on. Raises LocalError if something can't be had.
    """
    references = {name: images.ensure_layers(name, progress) for name in images.names()}
    environment = engine.ensure(progress)
    made = {name: models.ensure(name, progress) for name in models.SPECIFICATIONS}
    runtime = LocalRuntime(
        images=references,
        engine=HostEngine(host_path=str(environment), mount_path=engine.MOUNT_PATH, command=engine.COMMAND),
        models={name: DevelopmentModel(path=str(model.path), revision=model.revision) for name, model in made.items()},
    )
    _write(state.claim() / FILE, runtime.model_dump_json(by_alias=True, indent=2) + "\n")
    return runtime


def import_images(socket: Path, progress: Progress) -> None:
    """Import the images that `ensure` built last and the cluster's containerd lacks.

    Raises SettingsError if nothing is built, and LocalError if containerd at `socket` does not take them.
    """
    containerd.import_images(socket, LocalRuntime.load().images, progress)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text)
    partial.replace(path)
