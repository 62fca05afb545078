"""NLI clustering against hedge-bench 0.1.2 on the same answers, in one run: forward passes, and time.

    python benchmarks/clustering_nli.py                      # both tables, some minutes on two cores
    python benchmarks/clustering_nli.py passes

What says which answers entail or contradict each other is an oracle: the answers are generated with their meanings, and
the label of a pair follows from these, with noise that depends on the two texts only (see `Answers.relation`). For
the time a small DeBERTa-v2 with random weights computes every pair, with the same weights in both implementations, and
the oracle's labels are used in place of its own: random weights cannot tell a paraphrase.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import itertools
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from hedge_tasks.clustering import NliClustering, Relation
from hedge_tasks.clustering.relations import Classifier, Pair

CONTRADICTION, NEUTRAL, ENTAILMENT = Relation.CONTRADICTION, Relation.NEUTRAL, Relation.ENTAILMENT
N_QUESTIONS = 451  # VQA-RAD's test split
REFERENCE_BATCH = 256

FINDINGS = (
    *("fracture", "pneumothorax", "pleural effusion", "cardiomegaly", "consolidation", "midline shift", "hemorrhage"),
    *("mass", "nodule", "free air", "hydrocephalus", "edema", "infarct", "appendicitis", "lymphadenopathy"),
    *("atelectasis", "aneurysm", "bowel obstruction", "calcification", "pneumonia"),
)
ORGANS = (
    *("liver", "spleen", "left lung", "right lung", "brain", "heart", "kidney", "right kidney", "left kidney"),
    *("pancreas", "aorta", "stomach", "bladder", "colon", "gallbladder", "trachea", "left hemithorax"),
    *("right hemithorax", "frontal lobe", "right temporal lobe", "left parietal lobe", "cerebellum", "basal ganglia"),
)
MODALITIES = (
    ("CT scan", "CT", "Computed tomography", "Computed tomography (CT) scan", "CT image", "Axial CT"),
    ("MRI", "Magnetic resonance imaging", "MRI scan", "Brain MRI", "MR imaging"),
    ("X-ray", "Chest X-ray", "Radiograph", "Chest radiograph", "Plain film X-ray", "X-ray image"),
    ("Ultrasound", "Ultrasound imaging", "Sonogram"),
)

Meanings = Sequence[Sequence[str]]


# --- answers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answers:
    """Answer sets (baseline, n clean, n noisy), and what an NLI model of middling quality would say about them.

    Attributes:
        sets: The answers to each question.
        same: Pairs of texts that mean the same in some question.
    """

    sets: list[list[str]]
    same: frozenset[Pair]

    def relation(self, a: str, b: str) -> Relation:
        """The label of a pair.

        Texts that differ in case and full stop only entail each other. Of those with one meaning 75 % do, the others
        are neutral; of those with different meanings 70 % are contradictions, 28 % neutral and 2 % entailments. Each
        direction has a label of its own.
        """
        if a.lower().strip(" .") == b.lower().strip(" ."):
            return ENTAILMENT
        chance = fraction(a, b)
        if (a, b) in self.same:
            return ENTAILMENT if chance < 0.75 else NEUTRAL
        return CONTRADICTION if chance < 0.70 else NEUTRAL if chance < 0.98 else ENTAILMENT


@cache
def fraction(a: str, b: str) -> float:
    """A number in [0, 1) that depends on the two texts only."""
    return int(hashlib.sha256(f"{a}\0{b}".encode()).hexdigest()[:12], 16) / 16**12


def make_answers(n_questions: int, n: int, seed: int = 0) -> Answers:
    """Answers like those of a vision-language model to VQA-RAD: a few meanings a question, a few wordings of each.

    A question has about 8 different answers among 21, and about 10 among 41.
    """
    rng = random.Random(f"{seed}|{n}")
    sets, same = [], set()
    for _ in range(n_questions):
        answers, meaning = _one_question(rng, n)
        sets.append(answers)
        same |= {(a, b) for a, b in itertools.permutations(set(answers), 2) if meaning[a] == meaning[b]}
    return Answers(sets, frozenset(same))


def _one_question(rng: random.Random, n: int) -> tuple[list[str], dict[str, int]]:
    kinds: list[Callable[[random.Random], Meanings]] = [_yes_no, _where, _what, _modality, _sentence]
    meanings = rng.choices(kinds, weights=(50, 17, 15, 10, 8))[0](rng)
    order = rng.sample(range(len(meanings)), len(meanings))
    confidence, most_texts = rng.betavariate(2.2, 1.2), rng.randint(5, 15)
    meaning: dict[str, int] = {}

    def draw(confidence: float, spread: float) -> str:
        sharp = [(i + 1) ** -(0.4 + 4 * confidence) for i in range(len(order))]
        weights = [(1 - spread) * w / sum(sharp) + spread / len(order) for w in sharp]
        for _ in range(20):
            chosen = rng.choices(order, weights)[0]
            wordings = meanings[chosen]
            text = rng.choices(wordings, [(i + 1) ** -1.5 for i in range(len(wordings))])[0]
            if text in meaning or len(meaning) < most_texts:
                break
        noise = rng.random()
        text = text.lower() if noise < 0.03 else f"{text}." if noise < 0.07 else text
        meaning[text] = chosen
        return text

    baseline = draw(min(1.0, confidence + 0.3), 0.0)
    clean = [draw(confidence, 0.03) for _ in range(n)]
    noisy = [draw(max(0.0, confidence - 0.25), 0.15) for _ in range(n)]
    return [baseline, *clean, *noisy], meaning


def _yes_no(rng: random.Random) -> Meanings:
    f, o = rng.choice(FINDINGS), rng.choice(ORGANS)
    yes = (
        *("Yes", f"Yes, there is a {f}", f"Yes, {f} is present", f"Yes, there is evidence of {f}"),
        *(f"{f.capitalize()} is present", f"Yes, {f} in the {o}"),
    )
    no = (
        *("No", "No abnormality", f"No {f}", f"No evidence of {f}", f"No, there is no {f}", f"There is no {f}"),
        f"No {f} is seen in the {o}",
    )
    return yes, no, ("Unable to determine", f"Possible {f}", "Cannot be determined from this image")


def _where(rng: random.Random) -> Meanings:
    organs = rng.sample(ORGANS, 4)
    return [(o.capitalize(), f"The {o}", f"In the {o}", f"{o.capitalize()} region") for o in organs]


def _what(rng: random.Random) -> Meanings:
    o = rng.choice(ORGANS)
    found = [
        (f.capitalize(), f"{f.capitalize()} in the {o}", f"{o.capitalize()} {f}", f"A {f} of the {o}", f"Likely {f}")
        for f in rng.sample(FINDINGS, 4)
    ]
    return [*found, ("No abnormality", "Normal", "No abnormalities seen", "No acute abnormality")]


def _modality(rng: random.Random) -> Meanings:
    return MODALITIES


def _sentence(rng: random.Random) -> Meanings:
    (f, other_f), (o, other_o) = rng.sample(FINDINGS, 2), rng.sample(ORGANS, 2)
    return [
        *(
            (
                *(f"The image shows a {a} in the {b}", f"There is a {a} in the {b}", f"A {a} is seen in the {b}"),
                *(f"The image demonstrates {a} involving the {b}", f"The abnormality is a {a} located in the {b}"),
            )
            for a, b in ((f, o), (f, other_o), (other_f, o))
        ),
        ("The image shows no significant abnormality", "No significant abnormality is seen in the image"),
    ]


# --- the two implementations -----------------------------------------------------------------------------------------


class Counting:
    """A classifier that counts its calls and pairs."""

    def __init__(self, classify: Classifier) -> None:
        self.classify, self.passes, self.calls = classify, 0, 0

    def __call__(self, pairs: Sequence[Pair]) -> list[Relation]:
        self.passes += len(pairs)
        self.calls += 1
        return self.classify(pairs)


def by_oracle(answers: Answers) -> Classifier:
    return lambda pairs: [answers.relation(*pair) for pair in pairs]


def reference_clusters(sets: list[list[str]], classify: Classifier) -> list[list[int]]:
    """The NLI stage of hedge-bench with a classifier in place of its pipeline."""

    def pipeline(inputs: list[dict[str, str]], **_: Any) -> list[list[dict[str, Any]]]:
        relations = classify([(pair["text"], pair["text_pair"]) for pair in inputs])
        return [[{"label": label.name, "score": float(label is r)} for label in Relation] for r in relations]

    return _reference(sets, pipeline)


def _reference(sets: list[list[str]], pipeline: Callable[..., Any]) -> list[list[int]]:
    from hedge_bench import algorithms

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        labels = algorithms.get_nli_labels(sets, pipeline, B=REFERENCE_BATCH)
        clusters: list[list[int]] = algorithms.cluster_from_nli_labels(labels)
    return clusters


def our_clusters(sets: list[list[str]], classify: Classifier, **options: Any) -> list[list[int]]:
    return NliClustering(classifier=classify, **options).cluster(sets)


# --- tables ----------------------------------------------------------------------------------------------------------


def passes(options: argparse.Namespace) -> None:
    print("\nForward passes (oracle labels)")
    for n in (10, 20):
        answers = make_answers(options.questions, n)
        theirs, ours = Counting(by_oracle(answers)), Counting(by_oracle(answers))
        expected = reference_clusters(answers.sets, theirs)
        assert our_clusters(answers.sets, ours) == expected, "the partitions differ"
        distinct = statistics.mean(len(set(texts)) for texts in answers.sets)
        print(f"\nn = {n}: {options.questions} questions x {2 * n + 1} answers, {distinct:.1f} of them distinct (mean)")
        print(f"  {'hedge-bench 0.1.2':34} {theirs.passes:7} passes")
        _print_passes("ours, same partitions", ours, theirs.passes, expected)
        for name, backend in _variants(answers):
            counting = backend.classifier
            assert isinstance(counting, Counting)
            _print_passes(name, counting, theirs.passes, backend.cluster(answers.sets))


def _variants(answers: Answers) -> list[tuple[str, Any]]:
    return [
        ("ours, strict", NliClustering(rule="strict", classifier=Counting(by_oracle(answers)))),
        ("ours, veto", NliClustering(veto=True, classifier=Counting(by_oracle(answers)))),
    ]


def _print_passes(name: str, counting: Counting, reference: int, clusters: list[list[int]]) -> None:
    mean = statistics.mean(max(ids) + 1 for ids in clusters)
    print(
        f"  {name:34} {counting.passes:7} passes  ratio {counting.passes / reference:.3f}  "
        f"{counting.calls:3} rounds  {mean:.2f} clusters a question"
    )


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def seconds(options: argparse.Namespace) -> None:
    print(f"\nTime of the whole NLI stage on CPU, {options.timed_questions} questions, small random DeBERTa-v2")
    with tempfile.TemporaryDirectory() as folder:
        for n in (10, 20):
            answers = make_answers(options.timed_questions, n)
            save_model(Path(folder), answers)
            theirs, ours, unsliced = (make(Path(folder), answers) for make in (their_stage, our_stage, our_unsliced))
            assert theirs() == ours() == unsliced(), "the partitions differ"  # and both are warm
            times: dict[str, list[float]] = {"theirs": [], "ours": [], "unsliced": []}
            for _ in range(options.repetitions):
                for name, stage in (("theirs", theirs), ("ours", ours), ("unsliced", unsliced)):
                    times[name].append(timed(stage)[0])
            median = {name: statistics.median(values) for name, values in times.items()}
            print(
                f"  n = {n}: hedge-bench {median['theirs']:.2f} s, ours {median['ours']:.2f} s: "
                f"{median['theirs'] / median['ours']:.1f} times faster (smallest of {options.repetitions} rounds "
                f"{min(t / o for t, o in zip(times['theirs'], times['ours'], strict=True)):.1f}); "
                f"without slicing DeBERTa's positions {median['theirs'] / median['unsliced']:.1f}"
            )


Stage = Callable[[], list[list[int]]]


def their_stage(folder: Path, answers: Answers) -> Stage:
    """hedge-bench with a transformers pipeline, as its documentation builds it."""
    from transformers import pipeline

    model = pipeline("text-classification", model=str(folder), device="cpu", top_k=None)

    def classify(inputs: list[dict[str, str]], **options: Any) -> list[list[dict[str, Any]]]:
        model(inputs, **options)
        labels = [answers.relation(pair["text"], pair["text_pair"]) for pair in inputs]
        return [[{"label": label.name, "score": float(label is chosen)} for label in Relation] for chosen in labels]

    return lambda: _reference(answers.sets, classify)


def our_stage(folder: Path, answers: Answers) -> Stage:
    """Ours, with the package's own classifier and its default batches; nothing comes from a cache."""
    from hedge_tasks.clustering.nli_model import find_origin, load_nli_model

    load_nli_model.cache_clear()
    model = load_nli_model(find_origin(str(folder), None), "cpu", "float32")

    def classify(pairs: Sequence[Pair]) -> list[Relation]:
        list(model.predict(pairs, batch_size=256))
        return [answers.relation(*pair) for pair in pairs]

    return lambda: our_clusters(answers.sets, classify)


def our_unsliced(folder: Path, answers: Answers) -> Stage:
    from hedge_tasks.clustering import nli_model

    slicing = nli_model.slice_relative_positions
    nli_model.slice_relative_positions = lambda model: False
    try:
        return our_stage(folder, answers)
    finally:
        nli_model.slice_relative_positions = slicing


def save_model(folder: Path, answers: Answers) -> None:
    """A DeBERTa-v2 of the small models' shape, random weights, and a word-piece tokenizer trained on the answers."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification, PreTrainedTokenizerFast, logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    special = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    texts = sorted({text for texts in answers.sets for text in texts})
    trainer = trainers.WordPieceTrainer(vocab_size=600, special_tokens=list(special.values()), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **special).save_pretrained(folder)
    torch.manual_seed(0)
    labels = dict(enumerate(relation.name for relation in Relation))
    config = DebertaV2Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=6,
        intermediate_size=1536,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        type_vocab_size=0,
        position_biased_input=False,
        initializer_range=0.08,
        id2label=labels,
        label2id={label: i for i, label in labels.items()},
    )
    DebertaV2ForSequenceClassification(config).save_pretrained(folder)


TABLES: dict[str, Callable[[argparse.Namespace], None]] = {"passes": passes, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"{', '.join(TABLES)}; all by default")
    parser.add_argument("--questions", type=int, default=N_QUESTIONS)
    parser.add_argument("--timed-questions", type=int, default=60)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    if wrong := set(options.tables) - set(TABLES):
        parser.error(f"unknown table {sorted(wrong)[0]!r}; there are {', '.join(TABLES)}")
    for table in options.tables or TABLES:
        TABLES[table](options)


if __name__ == "__main__":
    main()
