"""Signatures of files by SSH keys, through `ssh-keygen -Y`: one beside the file, and a list of keys that are known."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.io.outside import clean

_ENDING = ".sig"
_TIMEOUT_S = 60
_LARGEST = 64 << 10


def signature_of(path: Path) -> Path:
    """Where the signature of a file is."""
    return path.with_name(path.name + _ENDING)


def sign(path: Path, key: Path, namespace: str) -> Path:
    """Sign a file with an SSH key, or with the agent's where `key` is a public one. Returns the signature's file.

    Raises:
        ConfigError: there is no such key, or no ssh-keygen.
        HedgeError: ssh-keygen refuses, as where the passphrase is wrong.
    """
    if not key.is_file():
        raise ConfigError(f"--sign: {key}: no such key")
    signature = signature_of(path)
    signature.unlink(missing_ok=True)
    # It may ask for a passphrase on the terminal, so that its standard input is left alone.
    done = subprocess.run(
        [_program(), "-Y", "sign", "-f", str(key), "-n", namespace, str(path)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        timeout=10 * _TIMEOUT_S,
    )
    if done.returncode != 0 or not signature.is_file():
        raise HedgeError(f"ssh-keygen did not sign {path}: {clean(done.stderr.strip())[:300]}")
    return signature


def signer_of(path: Path, namespace: str, signers: Path) -> str | None:
    """Who of the known has signed a file; None where nobody has.

    Args:
        path: the file.
        namespace: that was signed for.
        signers: `allowed_signers` as ssh-keygen(1) describes it: names and public keys.

    Raises:
        ConfigError: there is no such list, or no ssh-keygen.
    """
    if not signers.is_file():
        raise ConfigError(f"--signers: {signers}: no such file")
    signature = signature_of(path)
    if signature.is_symlink() or not signature.is_file() or signature.stat().st_size > _LARGEST:
        return None
    found = _asked(["find-principals", "-s", str(signature), "-f", str(signers)], None)
    for name in (found or "").splitlines():
        about = ["verify", "-f", str(signers), "-I", name, "-n", namespace, "-s", str(signature)]
        if name and not name.startswith("-") and _asked(about, path) is not None:
            return clean(name)[:100]
    return None


def _asked(arguments: list[str], told: Path | None) -> str | None:
    """Return what ssh-keygen says; None where it says no."""
    content = b"" if told is None else told.read_bytes()
    command = [_program(), "-Y", *arguments]
    done = subprocess.run(command, input=content, capture_output=True, timeout=_TIMEOUT_S)
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _program() -> str:
    found = shutil.which("ssh-keygen")
    if found is None:
        raise ConfigError("signatures need ssh-keygen (OpenSSH 8.1 or later), which is not installed here")
    return found
