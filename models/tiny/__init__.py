"""A vision-language model and an NLI classifier small enough to live inside the package.

Both are real `transformers` models with trained weights, so that every stage of an evaluation runs offline on a laptop.
They know drawings only: see `README.md` in this folder.
"""

from pathlib import Path

__all__ = ["nli_path", "report_nli_path", "report_weights", "vlm_path"]

_HERE = Path(__file__).resolve().parent


def vlm_path() -> Path:
    """Folder of the vision-language model, for `AutoModelForImageTextToText` and `AutoProcessor`."""
    return _HERE / "vlm"


def nli_path() -> Path:
    """Folder of the NLI classifier, for `AutoModelForSequenceClassification` and `AutoTokenizer`."""
    return _HERE / "nli"


def report_weights() -> Path:
    """Return the weights in which the vision-language model that writes reports differs from the one that answers."""
    return _HERE / "reports" / "vlm.safetensors"


def report_nli_path() -> Path:
    """Folder of the NLI classifier that reads reports of several sentences."""
    return _HERE / "reports" / "nli"
