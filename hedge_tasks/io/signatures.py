"""Signatures by SSH keys, through `ssh-keygen -Y`: in a file beside the signed one, or in a record with the key."""

from __future__ import annotations

import base64
import binascii
import hashlib
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.io.outside import clean

_ENDING = ".sig"
_TIMEOUT_S = 60
_LARGEST = 64 << 10
_MAGIC = b"SSHSIG"
_LENGTH = 4
"""Bytes of a length, or of the version of the format, in a signature."""


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
    """Return who of the known has signed a file; None where nobody has.

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
    principals = _output_of(["find-principals", "-s", str(signature), "-f", str(signers)], b"")
    for name in (principals or "").splitlines():
        arguments = ["verify", "-f", str(signers), "-I", name, "-n", namespace, "-s", str(signature)]
        if name and not name.startswith("-") and _output_of(arguments, path.read_bytes()) is not None:
            return clean(name)[:100]
    return None


def can_check() -> bool:
    """Whether signatures can be checked on this machine."""
    return shutil.which("ssh-keygen") is not None


def sign_text(text: bytes, key: Path, namespace: str) -> tuple[str, str]:
    """Sign a text with an SSH key. Errors name neither the key's place nor what ssh-keygen says of it.

    Returns:
        The signature, and the public key as in a file of public keys, without its comment.

    Raises:
        ConfigError: there is no such key, or no ssh-keygen.
        HedgeError: ssh-keygen refuses, as where the passphrase is wrong.
    """
    if not key.is_file():
        raise ConfigError("there is no such key")
    signature = _output_of(["sign", "-f", str(key), "-n", namespace], text, timeout=10 * _TIMEOUT_S)
    public_key = None if signature is None else public_key_in(signature)
    if signature is None or public_key is None:
        raise HedgeError("ssh-keygen did not sign: is it a private SSH key, and is its passphrase right?")
    return signature, public_key


def is_signed_text(text: bytes, signature: str, public_key: str, namespace: str) -> bool:
    """Whether a signature is of this text, by this key and for this namespace.

    Raises:
        ConfigError: there is no ssh-keygen.
    """
    if public_key_in(signature) != public_key:
        return False
    with TemporaryDirectory() as folder:
        file = Path(folder) / "signature"
        file.write_text(signature, "utf-8")
        return _output_of(["check-novalidate", "-n", namespace, "-s", str(file)], text) is not None


def public_key_in(signature: str) -> str | None:
    """Return the public key that a signature carries, as in a file of public keys; None where it is no signature."""
    try:
        content = base64.b64decode("".join(signature.strip().splitlines()[1:-1]), validate=True)
        key, _ = _field(content[len(_MAGIC) + _LENGTH :])
        kind = _field(key)[0].decode("ascii")
    except (binascii.Error, ValueError):
        return None
    if not content.startswith(_MAGIC) or not kind:
        return None
    return f"{kind} {base64.b64encode(key).decode()}"


def fingerprint_of(public_key: str) -> str:
    """Return the fingerprint of a public key as ssh-keygen shows it.

    Example:
        >>> fingerprint_of("ssh-ed25519 AAAA")
        'SHA256:cJ6AyISHokEeHuTfufIqhhSS0gxHZRUMDHlKvXD4FHw'
    """
    digest = hashlib.sha256(base64.b64decode(public_key.split()[1])).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def _field(content: bytes) -> tuple[bytes, bytes]:
    """Return a field that begins with its length, and what is behind it."""
    end = _LENGTH + int.from_bytes(content[:_LENGTH], "big")
    return content[_LENGTH:end], content[end:]


def _output_of(arguments: list[str], text: bytes, *, timeout: float = _TIMEOUT_S) -> str | None:
    """Return what `ssh-keygen -Y` prints; None where it says no."""
    done = subprocess.run([_program(), "-Y", *arguments], input=text, capture_output=True, timeout=timeout)
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _program() -> str:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise ConfigError("signatures need ssh-keygen (OpenSSH 8.1 or later), which is not installed here")
    return program
