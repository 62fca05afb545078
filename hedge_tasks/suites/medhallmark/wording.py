"""How much of the reference's wording an answer has: BLEU, ROUGE, METEOR, BERTScore, by the field's own libraries.

All numbers are between 0 and 1; the paper prints them times 100. What needs a download that is not there is undefined,
with the reason, and the rest still counts. The paper does not name the versions it used; a difference that is known:
its ROUGE counts punctuation ("Lung." and "lung" have nothing in common there, in rouge-score they are equal).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import metadata
from threading import Lock
from typing import Any

from loguru import logger

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.errors import HedgeError
from hedge_tasks.io.sources import MODELS, chosen_models, hub_or_cache
from hedge_tasks.measures.measure import Mean, Measure, Record
from hedge_tasks.numbers import Format, Number
from hedge_tasks.numbers.number import Interval

# The paper names no model. Its numbers are from 0.28 to 0.67, and unrelated English sentences get 0.35 with this model
# and 0.83 with roberta-large, by the library's own baselines: the paper's cannot be roberta-large's.
DEFAULT_BERTSCORE = "bert-base-uncased"

_PARTS = ("precision", "recall", "f1")

Wording = Callable[[str, str], float]
"""Answer and reference -> how much they have in common."""


_WORDNET = Lock()


class NotHere(HedgeError):
    """A library or a file that a metric needs is missing."""


@lru_cache(maxsize=4096)
def _rouge(answer: str, reference: str) -> Mapping[str, Any]:
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError:
        raise NotHere("ROUGE needs the package rouge-score (pip install rouge-score)") from None
    scores: Mapping[str, Any] = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False).score(reference, answer)
    return scores


def rouge(kind: str, part: str, answer: str, reference: str) -> float:
    """ROUGE-1, -2 or -L (`rouge1`, `rouge2`, `rougeL`) of one answer: `precision`, `recall` or `f1`.

    Raises:
        NotHere: the package rouge-score is missing.
    """
    score = _rouge(answer, reference)[kind]
    return float(score.fmeasure if part == "f1" else getattr(score, part))


def bleu(answer: str, reference: str) -> float:
    """Sentence BLEU of sacrebleu (13a tokens, exponential smoothing, as many n-grams as the answer has words).

    Raises:
        NotHere: the package sacrebleu is missing.
    """
    try:
        from sacrebleu import sentence_bleu
    except ImportError:
        raise NotHere("BLEU needs the package sacrebleu (pip install sacrebleu)") from None
    return float(sentence_bleu(answer, [reference]).score) / 100


def meteor(answer: str, reference: str) -> float:
    """METEOR of nltk with its own parameters, on lower-cased Treebank tokens.

    nltk looks for synonyms of stems, not of words, so that it finds "auto" for "car" and nothing for "automobile".

    Raises:
        NotHere: nltk or its WordNet is missing, or lacks some of its files.
    """
    # nltk reads WordNet through one file for all threads, and lmms-eval processes documents in several.
    with _WORDNET:
        if (missing := _wordnet_missing()) is not None:
            raise NotHere(missing)
        from nltk.tokenize import NLTKWordTokenizer
        from nltk.translate.meteor_score import single_meteor_score

        tokens = (NLTKWordTokenizer().tokenize(text.lower()) for text in (reference, answer))
        return float(single_meteor_score(*tokens))


@lru_cache(maxsize=1)
def _wordnet_missing() -> str | None:
    """Why nltk's WordNet cannot be read; looked for once."""
    try:
        from nltk.corpus import wordnet

        wordnet.ensure_loaded()
    except ImportError:
        return "METEOR needs the package nltk (pip install nltk)"
    except LookupError:
        return "METEOR needs nltk's WordNet (python -m nltk.downloader wordnet)"
    except (OSError, ValueError, AssertionError) as error:
        return f"METEOR needs nltk's WordNet, which cannot be read here: {str(error)[:200]}"
    return None


def bertscore_name() -> str:
    """Return the name or the folder of BERTScore's model. Numbers of two models cannot be compared."""
    return chosen_models().get("bertscore", DEFAULT_BERTSCORE)


def settings_by_measure() -> dict[str, str]:
    """Say what the numbers of this module are made with, by measure."""
    return {
        "bertscore": f"{bertscore_name()}, not rescaled (bert-score {_version('bert-score')})",
        "meteor": f"nltk {_version('nltk')}, alpha 0.9, beta 3, gamma 0.5 (its own), lower-cased Treebank tokens",
        "rouge": f"rouge-score {_version('rouge-score')}, lower-cased words, no stemming",
        "bleu": f"mean of sentence BLEU, sacrebleu {_version('sacrebleu')}",
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


# The same answers are asked about for every part of the score and every filter. A failure is kept, too: looking for a
# model that cannot be had takes long.
@lru_cache(maxsize=8)
def bertscore(pairs: tuple[tuple[str, str], ...], model: str) -> tuple[tuple[float, float, float], ...] | str:
    """Precision, recall and F1 of BERTScore for each (answer, reference), not rescaled; a text says why there are none.

    Args:
        model: name on the hub, or a folder.
    """
    try:
        from bert_score import BERTScorer
    except ImportError:
        return "BERTScore needs the package bert-score (pip install bert-score)"
    try:
        folder, layers = bertscore_model(model)
        scorer = BERTScorer(model_type=folder, num_layers=layers, rescale_with_baseline=False)
    except (OSError, ValueError) as error:
        logger.warning("BERTScore: {} cannot be loaded: {}", model, error)
        return f"BERTScore's model {model} is not here ({MODELS}=bertscore=... names another one)"
    answers, references = (list(texts) for texts in zip(*pairs, strict=True))
    return tuple(zip(*(part.tolist() for part in scorer.score(answers, references)), strict=True))


def bertscore_model(model: str) -> tuple[str, int]:
    """Return the folder of a model, and how many of its layers BERTScore looks at: the library's choice, else all.

    Raises:
        OSError, ValueError: its files are not here.
    """
    from bert_score.utils import model2layers
    from huggingface_hub import snapshot_download
    from transformers import AutoConfig

    folder = model
    if not os.path.isdir(model):
        with hub_or_cache():
            folder = snapshot_download(model, ignore_patterns=["*.h5", "*.msgpack", "*.ot", "onnx/*", "openvino/*"])
    return folder, model2layers.get(model) or AutoConfig.from_pretrained(folder).num_hidden_layers


_TIMES_100 = Format(digits=2, percent=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class InCommon(Mean):
    """Mean of how much answers have in common with their references, over those that have one."""

    nothing: str = "no document has a reference"
    format: Format = _TIMES_100

    def scored(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records with their numbers.

        Raises:
            NotHere: a library or a file is missing.
        """
        if missing := [record["missing"] for record in records if "missing" in record]:
            raise NotHere(missing[0])
        return records

    def by_judge(self, records: Sequence[Record], groups: Sequence[Hashable] | None = None) -> Number:
        try:
            return super().by_judge(self.scored(records), groups)
        except NotHere as missing:
            return Number.undefined(str(missing))


@dataclass(frozen=True, eq=False, kw_only=True)
class WordingMean(InCommon):
    """Mean of a measure of common wording.

    Attributes:
        wording: of one answer and its reference.
    """

    wording: Wording

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        answer, reference = str(document["baseline_answer"]), str(document["reference"])
        record: dict[str, Any] = {"value": None, "group": scores.group}
        try:
            return {**record, "value": self.wording(answer, reference)} if reference.strip() else record
        except NotHere as missing:
            return {**record, "missing": str(missing)}


@dataclass(frozen=True, eq=False, kw_only=True)
class BertScore(InCommon):
    """Mean of one part of BERTScore; all answers go through the model together, when the run is over.

    Attributes:
        part: "precision", "recall" or "f1".
    """

    part: str
    bounds: Interval = (-1.0, 1.0)

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        texts = {"answer": str(document["baseline_answer"]), "reference": str(document["reference"])}
        return {"value": None, "group": scores.group, **texts}

    def scored(self, records: Sequence[Record]) -> list[Record]:
        with_reference = [record for record in records if record["reference"].strip()]
        pairs = tuple((record["answer"], record["reference"]) for record in with_reference)
        scores = bertscore(pairs, bertscore_name()) if pairs else ()
        if isinstance(scores, str):
            raise NotHere(scores)
        numbers, column = iter(scores), _PARTS.index(self.part)
        return [{**r, "value": next(numbers)[column] if r["reference"].strip() else None} for r in records]


_KEPT = {
    ("rouge1", "f1"): "Mean F1 of the words that an answer and its reference share.",
    ("rougeL", "f1"): "Mean F1 of the longest sequence of words that an answer and its reference share.",
}
"""The parts of ROUGE that reports have."""

_TITLES = {"f1": "BERTScore", "recall": "BS R", "precision": "BS P"}


def _rouge_mean(kind: str, part: str) -> WordingMean:
    number = kind.removeprefix("rouge").upper()
    return WordingMean(
        name=f"{kind.lower()}_{part}",
        title=f"ROUGE-{number}" if part == "f1" else f"{number} {part[0].upper()}",
        about=_KEPT.get((kind, part), ""),
        wording=partial(rouge, kind, part),
        kept=(kind, part) in _KEPT,
    )


MEASURES: tuple[Measure, ...] = (
    *(_rouge_mean(*named) for named in _KEPT),
    WordingMean(
        name="bleu", title="BLEU", about="Mean of sentence BLEU against the reference.", wording=bleu, kept=True
    ),
    WordingMean(
        name="meteor",
        title="METEOR",
        about="Words, stems and synonyms that an answer shares with its reference, less for their order.",
        wording=meteor,
        kept=True,
    ),
    *(BertScore(name=f"bertscore_{part}", title=_TITLES[part], part=part) for part in _PARTS),
    *(_rouge_mean(k, p) for k in ("rouge1", "rouge2", "rougeL") for p in _PARTS if (k, p) not in _KEPT),
)
"""Measures of the wording. BERTScore needs a model for all answers together, so that no report has it."""
