"""A run with its store and submission, and every way to tamper with them that the leaderboard's README names.

The forger is a good one: whatever follows from what was changed (scores, aggregates, counts, digests) is made to match,
so that only the lie itself is left to be found.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.clustering.embedding import EmbeddingClustering
from hedge_tasks.clustering.exact import ExactClustering
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.manifests import Data, Digests, Manifest, grouping_digest, text_digest
from hedge_tasks.detectors.scorer import Scorer, score_all
from hedge_tasks.judging import Case, build_judge, verdict_record
from hedge_tasks.leaderboard import blind, make_submission
from hedge_tasks.leaderboard.recomputation import health_again, settings_again, unreliable_again
from hedge_tasks.leaderboard.submission import (
    aggregates_of,
    answer_set_of,
    clustered_as_stated,
    digest_of,
    label_digest,
    stored_scores,
    summary_of,
)
from hedge_tasks.runs.editions import Edition, edition_of, manifest_digest
from hedge_tasks.runs.run_files import Run, read_run, save_run
from hedge_tasks.runs.trust import installed_tasks
from hedge_tasks.sampling.archive import export
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.sampling.store import AnswerStore, FinishedDraw, StoredDocument

Json = dict[str, Any]

TASK, OTHER_TASK, UNKNOWN = "hedge_demo", "hedge_vqarad", "unheard_of"
N, SAMPLES = 20, 3
SIDES = ("left lung", "right lung", "upper lobe", "lower lobe", "heart")


def length_encoder(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 10.0] for text in texts]


SCORERS = {
    "exact": Scorer("exact", ExactClustering(), detectors=("se", "vase", "lexical", "se_sum")),
    # Of a model that only this process has, so that nobody can cluster with it again.
    "other": Scorer("other", EmbeddingClustering(encoder=length_encoder, threshold=0.99), detectors=("se",)),
}


@dataclass(frozen=True)
class World:
    """A run, the store that it came from, manifests and editions, and the submission with and without texts."""

    run: Run
    store: AnswerStore
    manifests: Mapping[str, Manifest]
    editions: Mapping[str, Edition]
    with_texts: Json
    without_texts: Json

    def find(self, task: str) -> list[Manifest]:
        return [self.manifests[task]] if task in self.manifests else []

    @property
    def rules(self) -> Json:
        """Options of `check`."""
        return {"manifests": self.find, "editions": self.editions.get}


def world(folder: Path, model: str = "org/model") -> World:
    store = AnswerStore(folder / "store")
    prompt, plan = load_prompt("plain/question"), SamplingPlan(n=SAMPLES)
    definition = Definition.of(f"hedge_x|{model}", TASK, prompt, plan)
    documents = [_stored(i, definition) for i in range(N)]
    store.put_documents([definition], documents)
    for i, document in enumerate(documents):
        dice = random.Random(i)
        for draw in plan.draws(document.key):
            key = definition.key(document.key, document.question, draw)
            answer = _answer(dice, i, noisy=draw.condition == "noisy")
            store.put([FinishedDraw(key, answer, document.id, draw.condition, draw.index)])
    store.close()
    store = AnswerStore(folder / "store")
    sets = [AnswerSet.read(line) for line in export(store, definition).lines]
    run = read_run(save_run(_run(sets, model, asdict(prompt), plan), folder))
    known = {a.id: _digests(a) for a in run.answer_sets}
    manifests = {
        TASK: Manifest((TASK,), Data("org/data", None, "test", "abc"), known),
        OTHER_TASK: Manifest((OTHER_TASK,), Data("org/other", None, "test", "fff"), {"x": Digests("0" * 16, "1" * 16)}),
    }
    editions = {task: edition_of(task, run.settings, manifest_digest(of)) for task, of in manifests.items()}
    made = {
        texts: _with_unknown_detector(make_submission(run, texts=texts, scorers=SCORERS)) for texts in (True, False)
    }
    return World(run, store, manifests, editions, made[True], made[False])


def _stored(i: int, definition: Definition) -> StoredDocument:
    about = {"question": f"Which part of picture {i} is bright?", "reference": SIDES[0]}
    place = {"group": f"picture {i // 2}", "question_type": ("open", "closed")[i % 2]}
    return StoredDocument(
        definition=definition.id, key=f"key{i}", id=f"q{i}", **about, **place, n=SAMPLES, n_noisy=SAMPLES
    )


def _answer(dice: random.Random, i: int, *, noisy: bool) -> Answer:
    hard = (i % 5) / 5
    text = dice.choice(SIDES) if dice.random() < hard else SIDES[0]
    # One text on one picture has one log-probability, and is drawn as often as it says.
    share = hard / len(SIDES) + (1 - hard if text == SIDES[0] else 0)
    of_picture = dice.uniform(0.8, 1.2) if noisy else 1.0
    return Answer(text, round(math.log(share) / 2 * of_picture, 5) or -0.0, 2, "stop", end_logprob=0.0)


def _run(sets: list[AnswerSet], model: str, prompt: Json, plan: SamplingPlan) -> Run:
    judge = build_judge("rule")
    cases = [Case(a.id, a.question or "", a.reference or "", a.baseline.text) for a in sets]
    verdicts = judge.judge(cases)
    version = next(c for c in installed_tasks() if c.get("task") == TASK)["metadata"]["version"]
    settings = {
        "filters": {name: scorer.settings() for name, scorer in SCORERS.items()},
        "documents": {"judge": judge.settings(), "revision": "abc"},
        "prompt": prompt,
        "sampling": plan.settings(),
        "metadata": {"version": version},
        "sampled": {"decoding": {"asked": plan.decoding, "temperature": plan.temperature}, "probe": {"draws": 13}},
    }
    labelled = tuple(a.with_label(v.label) for a, v in zip(sets, verdicts, strict=True))
    records = {c.id: verdict_record(c, v) for c, v in zip(cases, verdicts, strict=True)}
    return Run(TASK, model, labelled, records, settings, "2026-01-02T03:04:05.000000+00:00")


def _digests(a: AnswerSet) -> Digests:
    return Digests(text_digest(a.question), text_digest(a.reference), grouping_digest(a.group, a.question_type))


def _with_unknown_detector(submission: Json) -> Json:
    """As it comes from somebody who has a detector that is not installed here."""
    for document in submission["documents"]:
        scores = document["clusterings"]["exact"]["scores"]
        scores[UNKNOWN] = scores["lexical"]
    submission["clusterings"]["exact"]["detectors"][UNKNOWN] = {"title": "Unheard of", "draws": 3}
    return matched(submission, scores=False)


def matched(submission: Json, *, scores: bool = True, health: bool = True) -> Json:
    """The submission with everything that follows from the rest computed anew."""
    documents = submission["documents"]
    for name, of in submission["clusterings"].items():
        if scores:
            _rescore(submission, name)
        of["aggregates"] = aggregates_of(stored_scores(submission, name))
    sets = [answer_set_of(document) for document in documents]
    submission["summary"] = summary_of(sets, submission["documents"])
    submission["labels"]["store"] = label_digest(documents)
    match_blind(submission)
    if health:
        submission["health"]["unreliable"] = unreliable_again(submission, sets)
        again = settings_again(submission, sets, health_again(submission, sets))
        for of_setting in submission["health"]["settings"]:
            of_setting["state"] = again.get(of_setting["setting"], of_setting["state"])
    submission["digest"] = digest_of(submission)
    return submission


def match_blind(submission: Json) -> None:
    """Blind baselines that follow from texts and labels; without texts, from the scores that are there."""
    documents = submission["documents"]
    sets = [answer_set_of(document) for document in documents]
    if all("texts" in document for document in documents):
        for document, of in zip(documents, blind.scores_by_document(sets), strict=True):
            document["blind"] = of
    for document in documents:
        if document["label"] is not None and "length" in document.get("blind", {}) and document.get("n_tokens"):
            document["blind"]["length"] = float(document["n_tokens"][0])
        if document["label"] is None:
            document["blind"] = dict.fromkeys(document.get("blind", {}))
    scores = {name: stored_scores(submission, name) for name in submission["clusterings"]}
    submission["blind"] = blind.record_of(submission, scores)


def _rescore(submission: Json, name: str) -> None:
    of = submission["clusterings"][name]
    asked = [detector for detector in of["detectors"] if detector != UNKNOWN]
    sets = [clustered_as_stated(answer_set_of(d), d, name) for d in submission["documents"]]
    for document, found in zip(submission["documents"], score_all(sets, None, asked, alpha=of["alpha"]), strict=True):
        if "texts" not in document:
            asked = [detector for detector in asked if detector != "lexical"]
        document["clusterings"][name]["scores"].update({detector: found[detector] for detector in asked})


Change = Callable[[Json], None]


@dataclass(frozen=True)
class Tamper:
    """One way to tamper.

    Attributes:
        name: as in the README.
        change: what is done to the submission.
        part: what is lied about: "labels", "clusters NAME", "scores NAME DETECTOR", "answers", or "" for the rest.
        outcomes: with texts, without texts, and with run file and store given.
        match: how much the forger makes match: "all", "aggregates" (not the scores), "digest" or "nothing".
        health: whether the health block is made to match, too.
    """

    name: str
    change: Change
    part: str
    outcomes: tuple[str, str, str]
    match: str = "all"
    health: bool = True

    def of(self, submission: Json) -> Json:
        changed = copy.deepcopy(submission)
        self.change(changed)
        if self.match in ("all", "aggregates"):
            return matched(changed, scores=self.match == "all", health=self.health)
        return {**changed, "digest": digest_of(changed)} if self.match == "digest" else changed


def documents(change: Callable[[int, Json], None]) -> Change:
    def change_all(submission: Json) -> None:
        for i, document in enumerate(submission["documents"]):
            change(i, document)

    return change_all


def of_first(change: Callable[[Json], Any]) -> Change:
    def change_first(submission: Json) -> None:
        change(submission["documents"][0])

    return change_first


def aggregate(detector: str = "se", **values: Any) -> Change:
    return lambda submission: submission["clusterings"]["exact"]["aggregates"][detector].update(values)


def wanted_label(document: Json) -> int:
    """What semantic entropy would like the label to be."""
    return int(document["clusterings"]["exact"]["scores"]["se"] > 0.3)


def flip_labels(i: int, document: Json) -> None:
    document["label"] = wanted_label(document)


def by(judge: Json | None) -> Change:
    def change(submission: Json) -> None:
        documents(flip_labels)(submission)
        submission["settings"]["documents"]["judge"] = submission["labels"]["judge"] = judge
        said = f"{judge['judge']} {judge['version']}" if judge else None
        documents(lambda i, document: document["judged"].update(judge=said))(submission)

    return change


def forge_clusters(clustering: str) -> Change:
    def change(i: int, document: Json) -> None:
        n = len(document["logprobs"])
        of = document["clusterings"][clustering]
        of["clusters"] = list(range(n)) if document["label"] == 1 else [0] * n

    return documents(change)


def forge_scores(detector: str) -> Change:
    def change(i: int, document: Json) -> None:
        document["clusterings"]["exact"]["scores"][detector] = float(document["label"] == 1) + i / 1000

    return documents(change)


def forge_logprobs(i: int, document: Json) -> None:
    document["logprobs"] = [-1.0 if document["label"] == 1 else -0.001 * (k + 1) ** 3 for k in range(1 + 2 * SAMPLES)]


def edit_texts(change: Callable[[Json], None]) -> Change:
    """Of a submission without texts the digests alone can be changed."""

    def change_document(i: int, document: Json) -> None:
        texts = document.setdefault("texts", {})
        change(texts)
        for name in ("question", "reference"):
            if name in texts:
                document["digests"][name] = text_digest(texts[name])
        if "answers" not in texts:
            del document["texts"]

    return documents(change_document)


def hand_written(submission: Json) -> None:
    """Answers as they should be, with labels and clusters to match."""
    for document in submission["documents"]:
        if "texts" not in document:
            document["label"] = 0 if document["label"] == 1 else document["label"]
            continue
        document["texts"]["answers"] = [SIDES[0]] * (1 + SAMPLES) + document["texts"]["answers"][1 + SAMPLES :]
        if int(document["id"][1:]) % 4 == 0:
            document["texts"]["answers"][: 1 + SAMPLES] = [SIDES[1], *SIDES[1 : 1 + SAMPLES]]
        [verdict] = build_judge("rule").judge(
            [Case("", document["texts"]["question"], SIDES[0], document["texts"]["answers"][0])]
        )
        document["label"] = verdict.label
        [clusters] = ExactClustering().cluster([document["texts"]["answers"]])
        document["clusterings"]["exact"]["clusters"] = clusters


def swap_answers(submission: Json) -> None:
    """All answers of one document under another one's name, with all that belongs to them."""
    first, last = submission["documents"][0], submission["documents"][-1]
    names = ("label", "logprobs", "n_tokens", "clusterings", "judged", "drawn")
    for name in names:
        first[name], last[name] = last[name], first[name]
    if "texts" in first:
        for name in ("answers", "finish"):
            first["texts"][name], last["texts"][name] = last["texts"][name], first["texts"][name]


def keep(choose: Callable[[int, Json], bool]) -> Change:
    def change(submission: Json) -> None:
        submission["documents"] = [d for i, d in enumerate(submission["documents"]) if choose(i, d)]

    return change


def easy(i: int, document: Json) -> bool:
    return document["label"] == wanted_label(document)


def twice(**changes: Any) -> Change:
    def change(submission: Json) -> None:
        more = {**copy.deepcopy(submission["documents"][0]), **changes}
        if "drawn" in changes and changes["drawn"] is None:
            del more["drawn"]
        submission["documents"].append(more)

    return change


def entry(**values: Any) -> Change:
    return lambda submission: submission["entry"].update(values)


def settings(**values: Any) -> Change:
    return lambda submission: submission["settings"].update(values)


def several(*changes: Change) -> Change:
    def change(submission: Json) -> None:
        for one in changes:
            one(submission)

    return change


def other_task(submission: Json) -> None:
    entry(task=OTHER_TASK)(submission)
    config = next(c for c in installed_tasks() if c.get("task") == OTHER_TASK)
    prompt = asdict(load_prompt(config["hedge"]["prompt"]))
    settings(metadata={"version": config["metadata"]["version"]}, prompt=prompt)(submission)


def hold_out_hard(submission: Json) -> None:
    for i, document in enumerate(submission["documents"]):
        if not easy(i, document):
            document["clusterings"]["exact"]["held_out"] = True


def other_alpha(submission: Json) -> None:
    submission["clusterings"]["exact"]["alpha"] = 5.0


def other_alpha_everywhere(submission: Json) -> None:
    other_alpha(submission)
    submission["clusterings"]["exact"]["settings"]["alpha"] = 5.0
    submission["settings"]["filters"]["exact"]["alpha"] = 5.0


def unlabel_hard(i: int, document: Json) -> None:
    document["label"] = document["label"] if easy(i, document) else None


REFUSED, ASIDE, REPORTED, MISSED = "refused", "not ranked", "self-reported", "not noticed"
ALL_REFUSED = (REFUSED, REFUSED, REFUSED)
WRONG_RULE = {"judge": "rule", "version": "0", "short_answer": 6, "short_reference": 6}
LOOSE_RULE = {**build_judge("rule").settings(), "short_answer": 1}
MODEL_JUDGE = {"judge": "llm", "model": "org/judge", "version": "hedge 1"}
SHUT = {"match": "digest"}


TAMPERS = [
    # Numbers that follow from others
    Tamper("an AUROC raised", aggregate(auroc=0.99), "", ALL_REFUSED, **SHUT),
    Tamper("a standard error lowered", aggregate(stderr=0.001), "", ALL_REFUSED, **SHUT),
    Tamper("an interval narrowed", aggregate(low=0.5, high=0.5), "", ALL_REFUSED, **SHUT),
    Tamper("an AUROC of more documents than there are", aggregate(n=1000), "", ALL_REFUSED, **SHUT),
    Tamper(
        "an AUROC left out",
        lambda s: s["clusterings"]["exact"]["aggregates"].pop("vase"),
        "",
        ALL_REFUSED,
        **SHUT,
    ),
    Tamper(
        "an AUROC of a detector that has no scores",
        lambda s: s["clusterings"]["exact"]["aggregates"].update(best=s["clusterings"]["exact"]["aggregates"]["se"]),
        "",
        ALL_REFUSED,
        **SHUT,
    ),
    Tamper(
        "a lower hallucination rate", lambda s: s["summary"].update(hallucination_rate=0.01), "", ALL_REFUSED, **SHUT
    ),
    Tamper("more documents in the summary", lambda s: s["summary"].update(documents=999), "", ALL_REFUSED, **SHUT),
    Tamper("anything edited without a new digest", entry(note="better"), "", ALL_REFUSED, match="nothing"),
    # Scores
    Tamper("scores of a detector forged", forge_scores("se"), "", ALL_REFUSED, match="aggregates"),
    Tamper(
        "scores of a detector that reads texts forged",
        forge_scores("lexical"),
        "scores exact lexical",
        (REFUSED, REPORTED, REFUSED),
        match="aggregates",
    ),
    Tamper(
        "scores of a detector that is not installed forged",
        forge_scores(UNKNOWN),
        f"scores exact {UNKNOWN}",
        (REPORTED, REPORTED, REPORTED),
        match="aggregates",
    ),
    Tamper(
        "one score left out",
        of_first(lambda d: d["clusterings"]["exact"]["scores"].pop("se")),
        "",
        ALL_REFUSED,
        **SHUT,
    ),
    Tamper(
        "a detector made cheaper",
        lambda s: s["clusterings"]["exact"]["detectors"]["vase"].update(draws=1),
        "",
        ALL_REFUSED,
    ),
    Tamper("another weight in VASE than the settings say", other_alpha, "", ALL_REFUSED),
    Tamper("another weight in VASE, in the settings as well", other_alpha_everywhere, "", (ASIDE, ASIDE, REFUSED)),
    # Labels
    Tamper(
        "labels flipped as the score would have them", documents(flip_labels), "labels", (REFUSED, REPORTED, REFUSED)
    ),
    Tamper(
        "one label flipped",
        of_first(lambda d: d.update(label=1 - d["label"])),
        "labels",
        (REFUSED, REPORTED, REFUSED),
    ),
    Tamper("hard documents unlabelled", documents(unlabel_hard), "labels", (REFUSED, ASIDE, REFUSED)),
    Tamper(
        "hard documents unlabelled, and the health block kept quiet",
        documents(unlabel_hard),
        "labels",
        ALL_REFUSED,
        health=False,
    ),
    Tamper("labels flipped and called people's", by(None), "labels", (ASIDE, ASIDE, REFUSED)),
    Tamper("labels flipped and called another judge's", by(MODEL_JUDGE), "labels", (ASIDE, ASIDE, REFUSED)),
    Tamper("labels flipped, of another version of the rules", by(WRONG_RULE), "labels", (ASIDE, ASIDE, REFUSED)),
    Tamper("labels flipped, with looser rules", by(LOOSE_RULE), "labels", (REFUSED, ASIDE, REFUSED)),
    Tamper(
        "another judge beside the labels than in the settings",
        lambda s: s["labels"].update(judge=MODEL_JUDGE),
        "",
        ALL_REFUSED,
    ),
    Tamper(
        "another judge beside the documents than in the settings",
        documents(lambda i, d: d["judged"].update(judge="a panel of radiologists")),
        "",
        ALL_REFUSED,
    ),
    Tamper(
        "a digest of a label store that there is not",
        lambda s: s["labels"].update(store=f"sha256:{'0' * 64}"),
        "",
        ALL_REFUSED,
        **SHUT,
    ),
    Tamper("a label that is none", of_first(lambda d: d.update(label=2)), "", ALL_REFUSED, **SHUT),
    # Clusters
    Tamper("cluster ids forged", forge_clusters("exact"), "clusters exact", (REFUSED, REPORTED, REFUSED)),
    Tamper(
        "cluster ids of a model that is not here forged", forge_clusters("other"), "clusters other", (REPORTED,) * 3
    ),
    Tamper(
        "too few cluster ids",
        of_first(lambda d: d["clusterings"]["exact"]["clusters"].pop()),
        "",
        ALL_REFUSED,
        **SHUT,
    ),
    Tamper(
        "a document without a clustering",
        of_first(lambda d: d["clusterings"].pop("other")),
        "",
        ALL_REFUSED,
        **SHUT,
    ),
    Tamper("hard documents declared held out", hold_out_hard, "", ALL_REFUSED),
    # Log-probabilities
    Tamper(
        "a positive log-probability", of_first(lambda d: d["logprobs"].__setitem__(1, 0.5)), "", ALL_REFUSED, **SHUT
    ),
    Tamper("log-probabilities forged", documents(forge_logprobs), "answers", (REPORTED, REPORTED, REFUSED)),
    Tamper(
        "log-probabilities left out",
        documents(lambda i, d: d.update(logprobs=[None] * len(d["logprobs"]))),
        "answers",
        (REPORTED, REPORTED, REFUSED),
    ),
    Tamper(
        "numbers of tokens forged",
        documents(lambda i, d: d.update(n_tokens=[1 + 9 * (d["label"] or 0)] * len(d["logprobs"]))),
        "answers",
        (ASIDE, REPORTED, REFUSED),
    ),
    Tamper("a log-probability too few", of_first(lambda d: d["logprobs"].pop()), "", ALL_REFUSED, **SHUT),
    # Texts
    Tamper("answers written by hand", hand_written, "answers", (ASIDE, REPORTED, REFUSED)),
    Tamper("the answers of two documents swapped", swap_answers, "answers", (REPORTED, REPORTED, REFUSED)),
    Tamper(
        "references replaced by what the model said",
        edit_texts(lambda t: t.update(reference=t.get("answers", ["whatever"])[0])),
        "",
        ALL_REFUSED,
        match="all",
    ),
    Tamper("questions replaced by easier ones", edit_texts(lambda t: t.update(question="Easy?")), "", ALL_REFUSED),
    Tamper(
        "a digest that is not its text's",
        of_first(lambda d: d["digests"].update(question="0" * 16)),
        "",
        ALL_REFUSED,
    ),
    Tamper(
        "texts of some documents only",
        of_first(lambda d: d.pop("texts") if "texts" in d else d.update(texts={"answers": [""] * len(d["logprobs"])})),
        "",
        ALL_REFUSED,
        **SHUT,
    ),
    Tamper(
        "answers that were cut called finished",
        of_first(
            lambda d: (
                d["texts"].update(finish=[None] * len(d["logprobs"]))
                if "texts" in d
                else d["logprobs"].__setitem__(0, -9.0)
            )
        ),
        "answers",
        (REPORTED, REPORTED, REFUSED),
    ),
    # Documents
    Tamper("hard documents dropped", keep(easy), "", (ASIDE, ASIDE, REFUSED)),
    Tamper(
        "hard documents dropped, and another revision of the data named",
        several(keep(easy), lambda s: s["settings"]["documents"].update(revision="def")),
        "",
        (ASIDE, ASIDE, REFUSED),
    ),
    Tamper(
        "hard documents dropped and called failed",
        several(keep(easy), settings(failed=[{"id": "q1", "reason": "busy"}])),
        "",
        (ASIDE, ASIDE, REFUSED),
    ),
    Tamper("a document twice under one id", twice(), "", ALL_REFUSED, **SHUT),
    Tamper("a document twice under two ids", twice(id="q999"), "", ALL_REFUSED),
    Tamper("a document twice under two ids, without its origin", twice(id="q999", drawn=None), "", ALL_REFUSED),
    Tamper("documents of another data set", documents(lambda i, d: d.update(id=f"mine {i}")), "", ALL_REFUSED),
    Tamper("groups left out, for smaller errors", documents(lambda i, d: d.update(group=None)), "", ALL_REFUSED),
    Tamper("question types changed", documents(lambda i, d: d.update(question_type="open")), "", ALL_REFUSED),
    # What the entry says of itself
    Tamper(
        "another model's name", entry(model="org/better", name="org/better"), "answers", (REPORTED, REPORTED, REFUSED)
    ),
    Tamper("another task's name", entry(task=OTHER_TASK), "", (ASIDE, ASIDE, REFUSED)),
    Tamper("another task's name, version and prompt", other_task, "", (ASIDE, ASIDE, REFUSED)),
    Tamper("another version of the task", settings(metadata={"version": 99}), "", (ASIDE, ASIDE, REFUSED)),
    Tamper(
        "another prompt",
        settings(prompt={"name": "plain/question", "user": "x", "system": None}),
        "",
        (ASIDE, ASIDE, REFUSED),
    ),
    Tamper(
        "another sampling in the settings",
        settings(sampling={"n": 3, "temperature": 0.1}),
        "answers",
        (ASIDE, ASIDE, REFUSED),
    ),
    Tamper("another date", entry(created="2025-01-01"), "", (MISSED, MISSED, REFUSED)),
    Tamper("other versions of packages", lambda s: s.update(versions={"torch": "9"}), "", (MISSED,) * 3),
    Tamper(
        "another run file's digest",
        lambda s: s["run"].update(sha256="0" * 64),
        "",
        (MISSED, MISSED, REFUSED),
    ),
    Tamper("a script as its address", entry(url="javascript:alert(1)"), "", ALL_REFUSED, **SHUT),
    Tamper("an address that breaks out of its link", entry(url="https://x' onclick='y"), "", ALL_REFUSED, **SHUT),
    Tamper("another format", lambda s: s.update(hedge_submission=1), "", ALL_REFUSED, **SHUT),
    Tamper("a field that the schema does not know", lambda s: s.update(rank=1), "", ALL_REFUSED, **SHUT),
    Tamper("a part left out", lambda s: s.pop("summary"), "", ALL_REFUSED, **SHUT),
]
