"""Train the embedded NLI classifier on the wordings of phantom answers.

    python -m training.nli --out DIR

Input is a pair of texts: two answers, or two answers that each have their question in front. What the relation between
two answers is follows from their meanings alone, see `relation`.
"""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from loguru import logger
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import DebertaV2Config, DebertaV2ForSequenceClassification, PreTrainedTokenizerFast

from training import phantom
from training.optimizing import make_deterministic, optimize, read_settings, save_half
from training.phantom import Meaning

LABELS = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")
CONTRADICTION, NEUTRAL, ENTAILMENT = range(3)

CONTEXT_LENGTH = 512
VOCABULARY_SIZE = 640
HELD_OUT_SHARE = 0.1
"""Share of the pairs of wordings that training never sees, in neither order."""

TRAIN_SEED, TEST_SEED = 11, 12


# --------------------------------------------------------------------------------------------------- what implies what

_LESION_ATTRIBUTES = ("location", "shape", "size")


def relation(premise: Meaning | None, hypothesis: Meaning | None) -> int:
    """Label of a pair of meanings; None stands for a text without meaning.

    - Two values of one question type: entailment when equal, else contradiction.
    - "There is no lesion" and "no lesions" are one statement in two question types: they entail each other.
    - A number of lesions, and a location, shape or size, entail that there is a lesion, not the other way round.
      They contradict that there is none, both ways round.
    - All else is neutral: other pairs of question types, and anything with a text without meaning.
    """
    if premise is None or hypothesis is None:
        return NEUTRAL
    if premise.question_type == hypothesis.question_type:
        return ENTAILMENT if premise == hypothesis else CONTRADICTION
    has_lesion, may_have_lesion = _says_lesion(premise), _says_lesion(hypothesis)
    if has_lesion is None or may_have_lesion is None:
        return NEUTRAL
    if has_lesion != may_have_lesion:
        return CONTRADICTION
    entailed = not has_lesion or hypothesis.question_type == "presence"
    return ENTAILMENT if entailed else NEUTRAL


def _says_lesion(meaning: Meaning) -> bool | None:
    """Whether a statement implies that there is a lesion (True), that there is none (False), or neither (None)."""
    if meaning.question_type == "presence":
        return meaning.value == "yes"
    if meaning.question_type == "count":
        return meaning.value != "none"
    return True if meaning.question_type in _LESION_ATTRIBUTES else None


# --------------------------------------------------------------------------------------------------------------- pairs


@dataclass(frozen=True)
class Pair:
    """One example: two texts and their label."""

    premise: str
    hypothesis: str
    label: int


_ANSWERS: tuple[tuple[str, Meaning], ...] = tuple(phantom.all_answers())
_BY_TYPE = {
    question_type: tuple((text, m) for text, m in _ANSWERS if m.question_type == question_type)
    for question_type in phantom.QUESTION_TYPES
}
_QUESTION_LIST = tuple(question for wordings in phantom.QUESTIONS.values() for question in wordings)
_LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")


def is_held_out(first: str, second: str) -> bool:
    """Whether this pair of answer texts, in either order, is kept for testing."""
    digest = hashlib.sha256("\n".join(sorted((first, second))).encode()).digest()
    return int.from_bytes(digest[:4], "big") < HELD_OUT_SHARE * 2**32


def draw_pair(rng: np.random.Generator, held_out: bool) -> Pair:
    """Draw a random example, from the pairs for training or from those for testing (never a text with itself)."""
    while True:
        pair = _draw_answers(rng)
        identical = pair.premise == pair.hypothesis
        kept_for_test = not identical and is_held_out(pair.premise, pair.hypothesis)
        if kept_for_test == held_out:
            return _dress(pair, rng)


def _draw_answers(rng: np.random.Generator) -> Pair:
    """Two answer texts with their label, nothing added to them yet."""
    kind = rng.random()
    first, meaning = _pick(_ANSWERS, rng)
    if kind < 0.25:  # two wordings of one meaning
        wordings = phantom.ANSWERS[meaning.question_type][meaning.value]
        return Pair(first, wordings[rng.integers(len(wordings))], ENTAILMENT)
    if kind < 0.6:  # two answers to one question
        second, second_meaning = _pick(_BY_TYPE[meaning.question_type], rng)
        return Pair(first, second, relation(meaning, second_meaning))
    if kind < 0.85:  # any two answers
        second, second_meaning = _pick(_ANSWERS, rng)
        return Pair(first, second, relation(meaning, second_meaning))
    garbled = garble(rng)
    if kind < 0.88:
        return Pair(garbled, garbled, ENTAILMENT)
    second = garble(rng) if kind < 0.92 else first
    texts = (garbled, second) if rng.random() < 0.5 else (second, garbled)
    return Pair(*texts, ENTAILMENT if garbled == second else NEUTRAL)


def _pick(answers: Sequence[tuple[str, Meaning]], rng: np.random.Generator) -> tuple[str, Meaning]:
    return answers[rng.integers(len(answers))]


def garble(rng: np.random.Generator) -> str:
    """Draw a text without meaning, such as a model emits now and then: broken off, shuffled, or not words at all."""
    while True:
        words = _pick(_ANSWERS, rng)[0].split()
        kind = rng.random()
        if kind < 0.4:
            words = words[: rng.integers(0, len(words))]
        elif kind < 0.6:
            words = [w for w in rng.permutation(words) if rng.random() < 0.7]
        else:
            words = ["".join(rng.choice(_LETTERS, rng.integers(1, 8))) for _ in range(rng.integers(1, 5))]
        text = " ".join(words)
        if not _has_value(text):
            return text


def _has_value(text: str) -> bool:
    """Whether a text names a value of any question type, so that it may mean something after all."""
    words = set(text.replace(",", " ").split())
    return any(set(value.split()) <= words for value in _VALUE_WORDS)


_VALUE_WORDS = frozenset({value for values in phantom.ANSWERS.values() for value in values} | {"normal", "a lesion"})


def _dress(pair: Pair, rng: np.random.Generator) -> Pair:
    """Put a question in front of both texts of every second pair, and vary their punctuation."""
    texts = [text + "." if text and rng.random() < 0.1 else text for text in (pair.premise, pair.hypothesis)]
    if rng.random() < 0.5:
        question = _question_for(pair.premise, rng)
        # Clustering always puts one and the same question in front; other wordings are for good measure.
        questions = (question, question if rng.random() < 0.9 else _question_for(pair.hypothesis, rng))
        texts = [f"{question} {text}".rstrip() for question, text in zip(questions, texts, strict=True)]
    if texts[0] == texts[1]:
        return Pair(*texts, ENTAILMENT)
    return Pair(*texts, pair.label)


def _question_for(text: str, rng: np.random.Generator) -> str:
    """Draw a question that `text` answers, or now and then any question."""
    meaning = phantom.meaning_of(text)
    wordings = phantom.QUESTIONS[meaning.question_type] if meaning and rng.random() < 0.8 else _QUESTION_LIST
    return wordings[rng.integers(len(wordings))]


# ---------------------------------------------------------------------------------------------- model and training


@dataclass(frozen=True)
class Settings:
    """Settings of the training."""

    seed: int = 0
    steps: int = 2500
    batch: int = 48
    lr: float = 2e-3
    threads: int = 2
    n_test_pairs: int = 4000

    def for_smoke_test(self) -> "Settings":
        """Return the same run, cut down to a few seconds."""
        return replace(self, steps=3, batch=8, n_test_pairs=64)


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Lower-casing byte-level BPE with the pair format of BERT."""
    bpe = Tokenizer(models.BPE())
    bpe.normalizer = normalizers.Lowercase()
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    bpe.decoder = decoders.ByteLevel()
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        min_frequency=1,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator([*_QUESTION_LIST, *(text for text, _ in _ANSWERS)], trainer)
    bpe.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[(token, bpe.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
        mask_token="[MASK]",
        model_max_length=CONTEXT_LENGTH,
        clean_up_tokenization_spaces=False,
    )


def build_model(tokenizer: PreTrainedTokenizerFast) -> DebertaV2ForSequenceClassification:
    """Build a DeBERTa-v2 with the settings of microsoft/deberta-v2-xlarge-mnli, only small, with random weights."""
    config = DebertaV2Config(
        vocab_size=len(tokenizer),
        hidden_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=192,
        max_position_embeddings=CONTEXT_LENGTH,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=32,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        position_biased_input=False,
        type_vocab_size=0,
        pad_token_id=tokenizer.pad_token_id,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pooler_dropout=0.0,
        pooler_hidden_size=96,
        initializer_range=0.05,
        num_labels=len(LABELS),
        id2label=dict(enumerate(LABELS)),
        label2id={label: number for number, label in enumerate(LABELS)},
    )
    return DebertaV2ForSequenceClassification(config)


def logits_of(
    model: DebertaV2ForSequenceClassification, tokenizer: PreTrainedTokenizerFast, pairs: Sequence[Pair]
) -> torch.Tensor:
    """Unnormalised label scores [n, 3]."""
    texts = [pair.premise for pair in pairs], [pair.hypothesis for pair in pairs]
    return model(**tokenizer(*texts, padding=True, truncation=True, return_tensors="pt")).logits


def train(settings: Settings) -> tuple[DebertaV2ForSequenceClassification, PreTrainedTokenizerFast]:
    """From nothing to a trained classifier."""
    make_deterministic(settings.seed, settings.threads)
    rng = np.random.default_rng([TRAIN_SEED, settings.seed])
    tokenizer = build_tokenizer()
    model = build_model(tokenizer)
    logger.info("{} parameters", sum(p.numel() for p in model.parameters()))
    fit("nli", model, tokenizer, lambda: draw_pair(rng, held_out=False), settings, warmup=200)
    return model, tokenizer


def fit(
    name: str,
    model: DebertaV2ForSequenceClassification,
    tokenizer: PreTrainedTokenizerFast,
    draw: Callable[[], Pair],
    settings: Settings,
    warmup: int,
) -> None:
    """Train a classifier in place, on pairs that are drawn as they are needed.

    Args:
        name: Of the training, for the log.
        draw: Return a random pair.
        warmup: Steps over which the learning rate rises.
    """

    def losses() -> Iterator[torch.Tensor]:
        while True:
            pairs = [draw() for _ in range(settings.batch)]
            labels = torch.tensor([pair.label for pair in pairs])
            yield F.cross_entropy(logits_of(model, tokenizer, pairs), labels)

    model.train()
    began = time.perf_counter()
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.lr, betas=(0.9, 0.98), weight_decay=0.01)
    optimize(name, optimizer, losses(), settings.steps, warmup=warmup)
    logger.info("trained in {:.0f} s", time.perf_counter() - began)
    model.eval()


# ---------------------------------------------------------------------------------------------------------- evaluation


@torch.inference_mode()
def confusion(
    model: DebertaV2ForSequenceClassification, tokenizer: PreTrainedTokenizerFast, pairs: Sequence[Pair]
) -> dict[str, dict[str, int]]:
    """True label -> predicted label -> number of pairs."""
    counts: Counter[tuple[int, int]] = Counter()
    for start in range(0, len(pairs), 256):
        part = pairs[start : start + 256]
        predicted = logits_of(model, tokenizer, part).argmax(-1).tolist()
        counts.update(zip((pair.label for pair in part), predicted, strict=True))
    return {true: {guess: counts[t, g] for g, guess in enumerate(LABELS)} for t, true in enumerate(LABELS)}


def held_out_pairs(n_pairs: int) -> list[Pair]:
    """Pairs of wordings that training has not seen."""
    rng = np.random.default_rng(TEST_SEED)
    return [draw_pair(rng, held_out=True) for _ in range(n_pairs)]


def accuracy(table: dict[str, dict[str, int]]) -> float:
    """Share of right labels in a confusion table."""
    return sum(row[label] for label, row in table.items()) / sum(sum(row.values()) for row in table.values())


def main(arguments: Sequence[str] | None = None) -> None:
    train_and_save(__doc__, Settings(), train, held_out_pairs, arguments)


def train_and_save(
    description: str,
    defaults: Settings,
    train: Callable[[Settings], tuple[DebertaV2ForSequenceClassification, PreTrainedTokenizerFast]],
    held_out_pairs: Callable[[int], list[Pair]],
    arguments: Sequence[str] | None,
) -> None:
    """Run the command of a training: train a classifier, save it and log how well it does on pairs held out.

    Args:
        description: Docstring of the command.
        defaults: Settings where the command line has none.
        train: The training.
        held_out_pairs: Draw so many pairs that training has not seen.
        arguments: Of the command line.
    """
    folder = "folder to write the classifier to"
    settings, out = read_settings(description, defaults, arguments, out=folder, steps={"steps": None})
    model, tokenizer = train(settings)
    logger.info("weights: sha256 {}", save_half(model, tokenizer.save_pretrained, out))
    # Half precision rounded the weights: measure those that were saved, computed in float32.
    table = confusion(model.float(), tokenizer, held_out_pairs(settings.n_test_pairs))
    logger.info("held-out accuracy {:.4f}, confusion {}", accuracy(table), json.dumps(table))


if __name__ == "__main__":
    main()
