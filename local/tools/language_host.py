"""The Python language host of the Pulumi engine, for machines without the official one: programs and policy packs.

The engine starts it, reads a port from its standard output and speaks the LanguageRuntime service to it.
"""

import os
import queue
import runpy
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent import futures
from importlib.metadata import distributions
from pathlib import Path
from typing import IO, Any

import grpc
from pulumi import RunError
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2, language_pb2_grpc

_NO_LIMIT = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class LanguageHost(LanguageServer):
    """What the engine asks of a language: run a program, run a plugin written in it, say what it depends on."""

    def __init__(self) -> None:
        super().__init__(lambda: None)

    def Handshake(self, request: Any, context: Any) -> Any:
        """Accept the engine; it has nothing to tell that this host needs."""
        return language_pb2.LanguageHandshakeResponse()

    def Run(self, request: Any, context: Any) -> Any:
        """Run the program's `__main__.py`; its errors reach the user as diagnostics, once."""
        folder = Path(request.info.program_directory or request.pwd)
        program = folder / request.info.entry_point
        if program.is_dir():
            program = program / "__main__.py"
        os.chdir(request.pwd or folder)
        sys.path.insert(0, str(program.parent))
        sys.argv = [str(program), *request.args[1:]]
        self.program = lambda: _run(program)
        response = super().Run(request, context)
        return language_pb2.RunResponse(bail=True) if response.error else response

    def RunPlugin(self, request: Any, context: Any) -> Iterator[Any]:
        """Run a policy pack, or another plugin, with the Python of its own virtual environment where it has one."""
        folder = Path(request.info.program_directory)
        module = ["-m", "pulumi.policy"] if request.kind in ("", "analyzer") else []
        command = [_python_of(folder), "-u", *module, *_plugin_arguments(request.args, folder, bool(module))]
        environment = {**os.environ, **dict(line.split("=", 1) for line in request.env)}
        process = subprocess.Popen(
            command, cwd=request.pwd or folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        context.add_callback(process.terminate)
        yield from _output(process, language_pb2.RunPluginResponse)
        yield language_pb2.RunPluginResponse(exitcode=process.wait())

    def InstallDependencies(self, request: Any, context: Any) -> Iterator[Any]:
        """Make `.venv` in the program's folder from its requirements.txt; a folder without one needs nothing."""
        folder = Path(request.info.program_directory or request.directory)
        requirements = folder / "requirements.txt"
        if not requirements.is_file():
            return
        python = folder / ".venv" / "bin" / "python"
        for command in (
            [sys.executable, "-m", "venv", str(folder / ".venv")],
            [str(python), "-m", "pip", "install", "--quiet", "--requirement", str(requirements)],
        ):
            process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            yield from _output(process, language_pb2.InstallDependenciesResponse)
            if process.wait():
                context.abort(grpc.StatusCode.INTERNAL, f"{' '.join(command)} failed with exit {process.returncode}")

    def GetProgramDependencies(self, request: Any, context: Any) -> Any:
        """The packages of this environment, for `pulumi about`."""
        found = sorted((package.metadata["Name"], package.version) for package in distributions())
        return language_pb2.GetProgramDependenciesResponse(
            dependencies=[language_pb2.DependencyInfo(name=name, version=version) for name, version in found]
        )

    def RuntimeOptionsPrompts(self, request: Any, context: Any) -> Any:
        """Ask the user of `pulumi new` nothing."""
        return language_pb2.RuntimeOptionsResponse()


def _run(program: Path) -> None:
    try:
        runpy.run_path(str(program), run_name="__main__")
    except RunError:
        raise
    except SystemExit as exit_:
        if exit_.code:
            raise RunError(f"Program exited with non-zero exit code: {exit_.code}") from None
    except Exception as error:
        raise RunError(f"Program failed with an unhandled exception:\n{_trace(error, program)}") from None


def _trace(error: Exception, program: Path) -> str:
    """The traceback from the program on; a program that cannot be compiled has no frame of its own."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != str(program):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))


def _python_of(folder: Path) -> str:
    own = folder / ".venv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


def _plugin_arguments(arguments: Any, folder: Path, is_policy_pack: bool) -> list[str]:
    # A policy pack's runner takes the engine's address, then the pack; any other plugin is itself the program.
    return [*arguments, str(folder)] if is_policy_pack else [str(folder), *arguments]


def _output(process: subprocess.Popen[bytes], response: Any) -> Iterator[Any]:
    """What the process prints, as it prints it, until both of its streams end."""
    printed: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def read(name: str, stream: IO[bytes]) -> None:
        for line in stream:
            printed.put(response(**{name: line}))
        printed.put(None)

    for name, stream in (("stdout", process.stdout), ("stderr", process.stderr)):
        threading.Thread(target=read, args=(name, stream), daemon=True).start()
    for _ in range(2):
        while (line := printed.get()) is not None:
            yield line


def main() -> None:
    """Serve until the engine goes; it interrupts the host after use and waits five seconds for one that stays."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16), options=_NO_LIMIT)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(LanguageHost(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
