"""The attack corpus: an honest board, and everything that was tried on one, each with the mark that it must get.

The forger is a good one: whatever follows from what was changed (scores, aggregates, counts, digests) is made to match,
so that only the lie itself is left to be found. Whoever finds an entry that is ranked and bears no mark adds it here.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from hedge_tasks.clustering.exact import ExactClustering
from hedge_tasks.data.answers import Answer, AnswerSet, Thought
from hedge_tasks.data.manifests import Data, Digests, Manifest, grouping_digest, text_digest
from hedge_tasks.detectors.scorer import Scorer, score_all
from hedge_tasks.judging import Case, build_judge, verdict_record
from hedge_tasks.leaderboard import blind
from hedge_tasks.leaderboard.recomputation import health_again, settings_again, unreliable_again
from hedge_tasks.leaderboard.submission import (
    aggregates_of,
    answer_set_of,
    clustered_as_stated,
    digest_of,
    label_digest,
    make_submission,
    stored_scores,
    summary_of,
)
from hedge_tasks.runs.editions import Edition, edition_of, manifest_digest
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.signed_runs import SETTING, definition_digest
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import load_prompt

Json = dict[str, Any]
Mark = Literal["refused", "not ranked", "self-reported", "not replayed", "behind"]
"""The end of a forgery: its file is refused; it is shown apart; the part that was forged is called self-reported;
the page says that nobody had the model read the answers; it is ranked, and the lie makes its place worse."""

TASK = "board_of_forgeries"
N, DRAWS = 60, 6
_WORDS = ("left lung", "right lung", "upper lobe", "lower lobe", "heart", "spine", "liver", "no finding")
_PICTURE = "0123456789abcdef"
_NAMES = {"org/other": "Other 7B"}
"""Honest entries that are not named as their model."""


@dataclass(frozen=True)
class Honest:
    """An honest board: runs of models by name, and the rules that its maintainers fixed."""

    runs: Mapping[str, Run]
    manifest: Manifest
    edition: Edition

    def submission(self, model: str = "org/honest") -> Json:
        return make_submission(self.runs[model], texts=True, name=_NAMES.get(model))

    def rules(self) -> Json:
        """Options of `read_entries`."""
        return {
            "manifests": lambda task: [self.manifest] if task == TASK else [],
            "editions": lambda task: self.edition if task == TASK else None,
        }


def honest_board(seed: int = 0) -> Honest:
    """A board with two honest models."""
    runs = {name: _run(name, seed * 97 + i) for i, name in enumerate(("org/honest", "org/other"))}
    sets = runs["org/honest"].answer_sets
    digests = {
        a.id: Digests(
            text_digest(a.question), text_digest(a.reference), grouping_digest(a.group, a.question_type), _PICTURE
        )
        for a in sets
    }
    manifest = Manifest((TASK,), Data("org/board", None, "test", "abc"), digests)
    return Honest(runs, manifest, edition_of(TASK, runs["org/honest"].settings, manifest_digest(manifest)))


def _run(model: str, seed: int) -> Run:
    dice = random.Random(f"{model} {seed}")
    plan, judge = SamplingPlan(n=DRAWS), build_judge("rule")
    sets = tuple(_answers(i, dice) for i in range(N))
    settings = {
        "filters": {"embed": Scorer("embed", ExactClustering()).settings()},
        "documents": {"judge": judge.settings(), "question": "question", "images": ["image"], "revision": "abc"},
        "prompt": asdict(load_prompt("plain/question")),
        "sampling": plan.settings(),
        "metadata": {"version": 1.0},
        "sampled": {"decoding": {"asked": "pure", "temperature": 1.0}, "probe": {"draws": 13}},
    }
    return _judged(Run(TASK, model, (), settings=settings, created="2026-01-02T03:04:05.000000+00:00"), sets)


def _judged(run: Run, sets: Sequence[AnswerSet]) -> Run:
    """The run with these answers, labelled by the rule judge."""
    cases = [Case(a.id, a.question or "", a.reference or "", a.baseline.text) for a in sets]
    verdicts = build_judge("rule").judge(cases)
    records = {
        c.id: {**verdict_record(c, v), "image_key": _PICTURE, "judge": f"{v.judge} {v.version}"}
        for c, v in zip(cases, verdicts, strict=True)
    }
    labelled = tuple(a.with_label(v.label) for a, v in zip(sets, verdicts, strict=True))
    return replace(run, answer_sets=labelled, verdicts=records)


def _answers(i: int, dice: random.Random) -> AnswerSet:
    """Answers of one question, drawn as often as their log-probabilities say, the baseline answer at T = 0.1; on noisy
    pictures these are others. The harder a question is, the more often the likeliest answer is wrong."""
    hard = 0.2 + 0.06 * (i % 10)
    parts = [dice.uniform(0.5, 1.5) for _ in _WORDS]
    shares = [hard * part / sum(parts) for part in parts]
    shares[(i + (dice.random() < hard)) % 4] += 1 - hard
    mean_logprobs = {word: math.log(share) / 2 for word, share in zip(_WORDS, shares, strict=True)}

    def answer(noise: float, temperature: float = 1.0) -> Answer:
        [word] = dice.choices(_WORDS, [share ** (1 / temperature) for share in shares])
        logprob = round(mean_logprobs[word] * (1 + noise * dice.uniform(-0.2, 0.2)), 5)
        return Answer(word, logprob, 2, "stop", end_logprob=0.0)

    fields: Json = {
        "question": f"What does picture {i} show?",
        "reference": _WORDS[i % 4],
        "group": f"picture {i // 2}",
    }
    clean = tuple(answer(0.0) for _ in range(DRAWS))
    noisy = tuple(answer(1.0) for _ in range(DRAWS))
    return AnswerSet(f"q{i}", answer(0.0, 0.1), clean, noisy, **fields, question_type=("open", "closed")[i % 2])


def matched(submission: Json, *, scores: bool = True) -> Json:
    """The submission with everything that follows from the rest computed anew."""
    documents = submission["documents"]
    for name, record in submission["clusterings"].items():
        if scores:
            sets = [clustered_as_stated(answer_set_of(d), d, name) for d in documents]
            rescored = score_all(sets, None, list(record["detectors"]), alpha=record["alpha"])
            for document, mine in zip(documents, rescored, strict=True):
                document["clusterings"][name]["scores"].update(dict(mine))
        record["aggregates"] = aggregates_of(stored_scores(submission, name))
    sets = [answer_set_of(document) for document in documents]
    submission["summary"] = summary_of(sets, documents)
    submission["labels"]["store"] = label_digest(documents)
    for document, record in zip(documents, blind.scores_by_document(sets), strict=True):
        document["blind"] = record
    scores_by_clustering = {name: stored_scores(submission, name) for name in submission["clusterings"]}
    submission["blind"] = blind.record_of(submission, scores_by_clustering)
    submission["health"]["unreliable"] = unreliable_again(submission, sets)
    states = settings_again(submission, sets, health_again(submission, sets))
    for setting in submission["health"]["settings"]:
        setting["state"] = states.get(setting["setting"], setting["state"])
    return sealed(submission)


def sealed(submission: Json) -> Json:
    """The submission with its digest."""
    return {**submission, "digest": digest_of(submission)}


@dataclass(frozen=True)
class Forgery:
    """Something that was tried.

    Attributes:
        name: in words.
        forge: from the honest board to the files that a forger adds, the forged one first.
        marks: what may become of it; anything else is an unmarked entry.
        first: its files come before the honest ones, which must keep their places all the same.
    """

    name: str
    forge: Callable[[Honest], Sequence[Json]]
    marks: tuple[Mark, ...]
    first: bool = False


def _own(board: Honest, seed: int = 10) -> Run:
    """A run of a model of the forger's own, honest as yet."""
    return _run("org/mine", seed)


def _edited(change: Callable[[Json], Any], finish: Callable[[Json], Json] = matched) -> Callable[[Honest], list[Json]]:
    """The forger's own submission, edited, with all that follows; or with what `finish` makes of it."""

    def forge(board: Honest) -> list[Json]:
        submission = copy.deepcopy(make_submission(_own(board), texts=True))
        change(submission)
        return [finish(submission)]

    return forge


def _bare(change: Callable[[Json], Any]) -> Callable[[Honest], list[Json]]:
    """The forger's own submission, edited, with a new digest and nothing else that follows."""
    return _edited(change, sealed)


def _resampled(change: Callable[[AnswerSet], AnswerSet]) -> Callable[[Honest], list[Json]]:
    """A submission of a run whose answers were changed before it was written."""

    def forge(board: Honest) -> list[Json]:
        run = _own(board)
        return [make_submission(replace(run, answer_sets=tuple(map(change, run.answer_sets))), texts=True)]

    return forge


def _rejudged(change: Callable[[AnswerSet], AnswerSet]) -> Callable[[Honest], list[Json]]:
    """The same, with the answers judged again."""

    def forge(board: Honest) -> list[Json]:
        run = _own(board)
        return [make_submission(_judged(run, [change(a) for a in run.answer_sets]), texts=True)]

    return forge


def _settings(**changes: Any) -> Callable[[Json], None]:
    return lambda s: s["settings"]["sampling"].update(changes)


def _clustering(**changes: Any) -> Callable[[Json], None]:
    return lambda s: s["clusterings"]["embed"]["settings"].update(changes)


def _heavier(s: Json) -> None:
    _clustering(alpha=5.0)(s)
    s["clusterings"]["embed"]["alpha"] = 5.0


def _useful(answers: AnswerSet, n: int) -> tuple[Answer, ...]:
    """The draws that make the detector right: like the baseline where it is right, unlike it where it is wrong."""
    wrong = answers.label == 1
    return tuple(sorted(answers.clean, key=lambda a: (a.text == answers.baseline.text) is wrong)[:n])


def _scripted(answers: AnswerSet) -> AnswerSet:
    """Answers that nobody drew: every third one wrong, with draws that tell."""
    wrong = int(answers.id[1:]) % 3 == 0
    right = answers.reference or ""
    baseline = next(w for w in _WORDS if w != right) if wrong else right
    draws = tuple(Answer(_WORDS[k % 8] if wrong else right, -0.3 - 0.01 * k, 2, "stop") for k in range(DRAWS))
    noisy = tuple(Answer(a.text, (a.mean_logprob or 0) - 0.02, 2, "stop") for a in draws)
    return replace(answers, baseline=Answer(baseline, -0.3, 2, "stop"), clean=draws, noisy=noisy).with_label(int(wrong))


def _well_scripted(answers: AnswerSet) -> AnswerSet:
    """The same by somebody who knows that noisy answers have other log-probabilities."""
    scripted, dice = _scripted(answers), random.Random(answers.id)

    def reweighted(answer: Answer) -> Answer:
        return replace(answer, mean_logprob=round(-dice.uniform(0.05, 2.0), 5))

    return replace(scripted, clean=tuple(map(reweighted, scripted.clean)), noisy=tuple(map(reweighted, scripted.noisy)))


def _declines(answers: AnswerSet) -> AnswerSet:
    if int(answers.id[1:]) < 4:
        return answers
    refusal = Answer("I am sorry, I cannot answer that.", -0.2, 8, "stop")
    return replace(answers, baseline=refusal).with_label(None)


def _declined(board: Honest) -> list[Json]:
    run = _own(board)
    return [make_submission(_judged(run, [_declines(a) for a in run.answer_sets]), texts=True)]


def _hard_unlabelled(s: Json) -> None:
    for document in s["documents"]:
        if document["label"] == 1:
            document["label"] = None


def _flipped(s: Json) -> None:
    for document in s["documents"]:
        document["label"] = int(document["clusterings"]["embed"]["scores"]["se"] > 0.3)


def _other_judge(s: Json) -> None:
    judge = {"judge": "llm", "model": "org/judge", "version": "1"}
    s["settings"]["documents"]["judge"] = s["labels"]["judge"] = judge
    _flipped(s)
    for document in s["documents"]:
        document["judged"]["judge"] = "llm 1"


def _label_in_clusters(s: Json) -> None:
    for document in s["documents"]:
        n = len(document["logprobs"])
        document["clusterings"]["embed"]["clusters"] = list(range(n)) if document["label"] == 1 else [0] * n


def _stolen(**changes: str) -> Callable[[Honest], list[Json]]:
    def forge(board: Honest) -> list[Json]:
        submission = copy.deepcopy(board.submission())
        submission["entry"] |= changes
        return [sealed(submission)]

    return forge


def _stolen_with_noise(board: Honest) -> list[Json]:
    submission = copy.deepcopy(board.submission())
    submission["entry"] |= {"name": "mine", "model": "org/mine"}
    for document in submission["documents"]:
        document["logprobs"] = [value - 1e-7 for value in document["logprobs"]]
        document["clusterings"]["embed"]["clusters"] = [c + 7 for c in document["clusterings"]["embed"]["clusters"]]
    return [matched(submission)]


def _add_noise(document: Json) -> None:
    """Add thousandths to log-probabilities, the same for equal texts."""
    texts = document["texts"]["answers"]
    noise = {text: random.Random(f"{document['id']}/{text}").uniform(0.002, 0.006) for text in texts}
    document["logprobs"] = [value - noise[text] for value, text in zip(document["logprobs"], texts, strict=True)]


def _stolen_with_stops(board: Honest) -> list[Json]:
    """Stolen with a full stop behind one noisy answer of each document, and thousandths on the log-probabilities."""
    submission = copy.deepcopy(board.submission())
    submission["entry"] |= {"name": "mine", "model": "org/mine"}
    for document in submission["documents"]:
        _add_noise(document)
        document["texts"]["answers"][-1] += "."
    return [matched(submission)]


def _renamed_with_noise(board: Honest) -> list[Json]:
    """Draws of the honest model with another seed and thousandths on the log-probabilities, under another name."""
    [submission] = _renamed_seeds(board)
    submission = copy.deepcopy(submission)
    for document in submission["documents"]:
        _add_noise(document)
    return [matched(submission)]


def _replied(s: Json) -> None:
    """The judge is shown another answer than was scored: the reference, wherever the answer is wrong."""
    for document in s["documents"]:
        document["texts"]["reply"] = document["texts"]["reference"]
        document["label"] = 0


def _label_in_baseline(s: Json) -> None:
    for document in s["documents"]:
        document["logprobs"][0] = -2.0 if document["label"] == 1 else -0.2


def _thought(s: Json, n: int | None = None) -> None:
    """Behind thoughts, log-probabilities of one text may differ."""
    _label_in_baseline(s)
    for document in s["documents"]:
        count = len(document["logprobs"])
        document["thoughts"] = [1] * count if n is None else [1] * n + [None] * (count - n)


def _ties_broken(board: Honest) -> list[Json]:
    """Equal scores told apart in digits that no comparison sees."""
    submission = copy.deepcopy(make_submission(_own(board), texts=True))
    for document in submission["documents"]:
        scores = document["clusterings"]["embed"]["scores"]
        for name, value in scores.items():
            if value is not None:
                scores[name] = value + (9e-12 if document["label"] == 1 else -9e-12)
    return [matched(submission, scores=False)]


def _noisy_by_label(answers: AnswerSet) -> AnswerSet:
    """Noisy answers that are the baseline answer where it is right, and any other where it is wrong."""
    others = [a for a in answers.clean if a.text != answers.baseline.text] or [answers.baseline]
    candidates = others if answers.label == 1 else [answers.baseline]
    dice = random.Random(answers.id)

    def heard(k: int) -> Answer:
        logprob = candidates[k % len(candidates)].mean_logprob or 0.0
        return replace(candidates[k % len(candidates)], mean_logprob=round(logprob * dice.uniform(0.95, 1.05), 5))

    return replace(answers, noisy=tuple(heard(k) for k in range(DRAWS)))


def _numbers_of_its_own(s: Json) -> None:
    """Numbers that the task does not have, which would come first on its pages."""
    fields: Json = {"higher_is_better": True, "value": 0.999, "stderr": 0.001, "low": 0.99, "high": 1.0, "n": N}
    fields |= {"n_groups": N // 2, "reason": None}
    s["suite"] = {f"A{i:02d}": {"title": f"Free of hallucinations {i}", **fields} for i in range(60)}


def _copied(board: Honest) -> list[Json]:
    """Somebody's file under another name."""
    return [copy.deepcopy(board.submission())]


def _sampled(**changes: Any) -> Callable[[Json], None]:
    return lambda s: s["settings"]["sampled"].update(changes)


def _method(name: str) -> Callable[[Json], None]:
    return lambda s: s["settings"]["sampled"]["decoding"].update(method={"name": name})


def _refused(text: str) -> Callable[[Json], None]:
    return lambda s: _decoding_of(s).update(sent={"refused": [text], "rest": "server"})


def _ends_short(key: str, value: Any) -> Callable[[Json], None]:
    def change(s: Json) -> None:
        for document in s["documents"]:
            document[key] = value

    return change


def _counted_baseline(s: Json) -> None:
    for document in s["documents"]:
        document["n_tokens"][0] = 40 if document["label"] == 1 else 2


def _spelled_baseline(s: Json) -> None:
    """No draw has the baseline answer's text, so that its log-probability cannot be compared."""
    _label_in_baseline(s)
    for document in s["documents"]:
        document["texts"]["answers"][1:] = [f"{text}." for text in document["texts"]["answers"][1:]]


def _label_in_draws(s: Json) -> None:
    """Log-probabilities that know the label, and are too high everywhere: no test tells that without end tokens."""
    for document in s["documents"]:
        del document["end_logprobs"]
        texts, n = document["texts"]["answers"], document["n_clean"]
        high = {text: -0.3 if document["label"] == 1 or text != texts[0] else -0.02 for text in texts}
        document["logprobs"] = [high[text] * (1 if k <= n else 1.1 + 0.01 * k) for k, text in enumerate(texts)]


def _spelled_apart(answers: AnswerSet) -> AnswerSet:
    """No draw repeats, so that none is held against its log-probability; the baseline answer is one of them."""
    low = random.Random(answers.id).uniform(-2.6, -2.0)
    baseline = replace(answers.baseline, mean_logprob=-5.0 if answers.label == 1 else -1.9)
    others = (replace(a, text=a.text + "." * k, mean_logprob=low) for k, a in enumerate(answers.clean[1:], 1))
    return replace(answers, baseline=baseline, clean=(baseline, *others))


def _counted_all(s: Json) -> None:
    """Every answer as likely as before, in many tokens where the baseline answer is right: means know the label."""
    for document in s["documents"]:
        if document["label"] == 0:
            document["logprobs"] = [value / 4 for value in document["logprobs"]]
            document["n_tokens"] = [4 * count for count in document["n_tokens"]]


def _chosen(answers: AnswerSet) -> AnswerSet:
    """Of twice as many draws those that agree where the answer is right, and those that differ where it is wrong."""
    dice, by_text = random.Random(answers.id), {a.text: a for a in answers.clean}
    ordered = _useful(answers, DRAWS)
    half = ordered[: DRAWS // 2]
    spread = list(by_text.values()) if answers.label == 1 else half
    return replace(answers, clean=tuple(dice.choices(spread, k=DRAWS)))


def _of_wrong(change: Callable[[AnswerSet], AnswerSet]) -> Callable[[AnswerSet], AnswerSet]:
    """A change of the documents alone whose baseline answer is wrong."""
    return lambda answers: change(answers) if answers.label == 1 else answers


def _unheard(answer: Answer, k: int = 0, words: str = "{}.") -> Answer:
    """An answer that no other repeats, as unlikely as one likes."""
    text = words.format(answer.text)
    return replace(answer, text=text, mean_logprob=round(-2.0 - 0.07 * k, 5), n_tokens=2 + len(text.split()))


def _spoken(answers: AnswerSet) -> AnswerSet:
    return replace(answers, baseline=_unheard(answers.baseline, words="It is: {}"))


def _respelled(answers: AnswerSet) -> AnswerSet:
    return replace(answers, baseline=_unheard(answers.baseline))


def _sure_respelled(answers: AnswerSet) -> AnswerSet:
    """Only where the model is sure of a wrong answer, which no honest log-probability tells."""
    sure = sum(a.text == answers.baseline.text for a in answers.clean) >= DRAWS // 2
    return replace(answers, baseline=_unheard(answers.baseline)) if sure else answers


def _drawn_once(answers: AnswerSet) -> AnswerSet:
    """The baseline answer's text is drawn again, once, so that it looks tested."""
    baseline = replace(answers.baseline, text=f"{answers.baseline.text} there", mean_logprob=-3.0)
    others = [a for a in answers.clean if a.text != answers.baseline.text] or list(answers.clean)
    return replace(answers, baseline=baseline, clean=(baseline, *(others * DRAWS)[: DRAWS - 1]))


def _thinking(answers: AnswerSet) -> AnswerSet:
    """Thoughts, behind which any log-probability may stand."""
    baseline, *draws = (replace(a, thought=Thought(7)) for a in answers.answers)
    clean, noisy = tuple(draws[: len(answers.clean)]), tuple(draws[len(answers.clean) :])
    return replace(answers, baseline=replace(baseline, mean_logprob=-2.0), clean=clean, noisy=noisy)


def _scattered(answers: AnswerSet) -> AnswerSet:
    """Every draw is another text, and as unlikely as that needs."""
    clean = (_unheard(a, k, f"{{}} {_WORDS[k % 8].split()[0]} {k}") for k, a in enumerate(answers.clean))
    return replace(answers, clean=tuple(clean))


def _foreign_noise(answers: AnswerSet) -> AnswerSet:
    """Noisy answers that nobody gives to the clean picture, so that no bet is on them."""
    return replace(answers, noisy=tuple(_unheard(a, k, f"mass number {k}") for k, a in enumerate(answers.noisy)))


def _few_ends(s: Json) -> None:
    """End tokens in a dozen documents, by which the rest looks tested."""
    ends = [document["end_logprobs"] for document in s["documents"]]
    _label_in_draws(s)
    for i, (document, own) in enumerate(zip(s["documents"], ends, strict=True)):
        document["end_logprobs"] = own if i < 12 else [None] * len(own)


def _permuted(submission: Json, noise: float = 0.0) -> Json:
    """Draws in another order, and the log-probabilities of each text moved by one number."""
    permuted, dice = copy.deepcopy(submission), random.Random(3)
    for document in permuted["documents"]:
        n = 1 + document["n_clean"]
        moved: dict[object, float] = {}
        order = [*range(1, n)], [*range(n, len(document["logprobs"]))]
        for indices in order:
            dice.shuffle(indices)
        places = [0, *order[0], *order[1]]
        texts = document["texts"]
        for holder, keys in ((document, ("logprobs", "n_tokens", "end_logprobs")), (texts, ("answers", "finish"))):
            holder.update({key: [holder[key][i] for i in places] for key in keys if key in holder})
        for clustering in document["clusterings"].values():
            numbers: dict[int, int] = {}
            clusters = (clustering["clusters"][i] for i in places)
            clustering["clusters"] = [numbers.setdefault(cluster, len(numbers)) for cluster in clusters]
        for i, text in enumerate(texts["answers"] if noise else ()):
            by = moved.setdefault(text if i < n else i, dice.choice((-1, 1)) * noise * dice.uniform(0.8, 1.2))
            document["logprobs"][i] = min(round(document["logprobs"][i] + by, 5), -1e-5)
    return matched(permuted)


def _stolen_permuted(board: Honest) -> list[Json]:
    submission = copy.deepcopy(board.submission())
    submission["entry"] |= {"name": "mine", "model": "org/mine"}
    return [_permuted(submission, 0.03)]


def _permuted_seed(board: Honest) -> list[Json]:
    """An entry's own draws as another seed of its model, which is to speak for it."""
    submission = copy.deepcopy(board.submission())
    submission["settings"]["sampling"]["seed"] = 1
    return [_permuted(submission)]


def _part(run: Run, n: int) -> Run:
    return replace(run, answer_sets=run.answer_sets[:n])


def _model_of_a_name(n: int, task: str = TASK) -> Callable[[Honest], list[Json]]:
    """Entries of a model that is called as an honest entry is named."""
    return lambda board: [
        make_submission(replace(_part(_own(board), n), model=_NAMES["org/other"], task=task), texts=True, name="mine")
    ]


def _stolen_part(board: Honest) -> list[Json]:
    """A dozen documents of an open pull request, merged before it."""
    part = replace(_part(board.runs["org/honest"], 12), model="org/mine")
    return [make_submission(part, texts=True)]


def _name_taken(board: Honest) -> list[Json]:
    """A run that nobody can compute again, under a model's name before that has a run of its own."""
    run = _run("org/honest", 9)
    flipped = tuple(a.with_label(1 - a.label) if a.label is not None else a for a in run.answer_sets)
    return [make_submission(replace(run, answer_sets=flipped), texts=False)]


def _uncounted(s: Json) -> None:
    for document in s["documents"]:
        document.pop("n_tokens")


def _unblind(s: Json) -> None:
    for document in s["documents"]:
        document.pop("blind", None)
    s["blind"] = {name: {"rows": [], "not_better": []} for name in s["blind"]}


def _weak_blind(s: Json) -> None:
    """Classifiers that know nothing."""
    for document in s["documents"]:
        for name in document.get("blind", {}):
            if name != "length" and document["blind"][name] is not None:
                document["blind"][name] = 0.5
    scores = {name: stored_scores(s, name) for name in s["clusterings"]}
    s["blind"] = blind.record_of(s, scores)


def _own_word(s: Json) -> None:
    row = {"setting": "answers replayed by the maintainers", "state": "verified", "evidence": "seen"}
    s["health"]["settings"].append(row)


def _stolen_reworded(board: Honest) -> list[Json]:
    """Stolen without its texts, log-probabilities rounded, under another name."""
    submission = copy.deepcopy(make_submission(board.runs["org/honest"], texts=False))
    submission["entry"] |= {"name": "mine", "model": "org/mine"}
    return [sealed(submission)]


def _renamed_seeds(board: Honest) -> list[Json]:
    """Draws of the honest model with another seed, under another name."""
    run = board.runs["org/honest"]
    dice = random.Random(5)
    sets = [replace(a, clean=tuple(dice.choices(a.clean, k=DRAWS))) for a in run.answer_sets]
    return [make_submission(replace(run, model="org/mine", answer_sets=tuple(sets)), texts=True)]


def _four_seeds(board: Honest) -> list[Json]:
    """One model four times, the best seed first."""
    submissions = []
    for seed in (3, 1, 2, 0):
        run = _run("org/mine", 20 + seed)
        sampling = {**run.settings["sampling"], "seed": seed}
        submissions.append(make_submission(replace(run, settings={**run.settings, "sampling": sampling}), texts=True))
    return submissions


def _sybils(board: Honest) -> list[Json]:
    """Two who agree on half of the documents."""
    runs = [replace(r, answer_sets=r.answer_sets[:30]) for r in (_own(board), replace(_own(board, 8), model="org/two"))]
    return [make_submission(run, texts=True) for run in runs]


def _invented(board: Honest) -> list[Json]:
    run = _own(board)
    invented = tuple(replace(a, id=f"mine {a.id}", question=f"{a.question} And?") for a in run.answer_sets)
    verdicts = {**run.verdicts, **{f"mine {id}": verdict for id, verdict in run.verdicts.items()}}
    return [make_submission(replace(run, answer_sets=(*run.answer_sets, *invented), verdicts=verdicts), texts=True)]


def _named(name: str, key: str = "name") -> Callable[[Honest], list[Json]]:
    return _bare(lambda s: s["entry"].update({key: name}))


def _left_out(*path: str) -> Callable[[Json], None]:
    def change(s: Json) -> None:
        inner = s["settings"]
        for key in path[:-1]:
            inner = inner[key]
        del inner[path[-1]]

    return change


def _no_pictures(s: Json) -> None:
    for document in s["documents"]:
        document["digests"]["pictures"] = None


def _imported(s: Json) -> None:
    s["clusterings"]["embed"]["settings"].update(backend="nli", model="package://antigravity/x")


_HEAT = ("sampled", "decoding", "temperature")

APART: tuple[Mark, ...] = ("not ranked",)
GONE: tuple[Mark, ...] = ("refused",)
EITHER: tuple[Mark, ...] = ("refused", "not ranked")
SAID: tuple[Mark, ...] = ("not ranked", "self-reported")


def _stopped_where_wrong(answers: AnswerSet) -> AnswerSet:
    """The baseline answer spelled as no draw of its words where it is wrong, so that its log-probability is free."""
    if answers.label == 0:
        return answers
    baseline = replace(answers.baseline, text=f"{answers.baseline.text}.", mean_logprob=-3.0)
    return replace(answers, baseline=baseline, clean=(replace(answers.baseline), *answers.clean[1:]))


def _thought_where_wrong(s: Json) -> None:
    """Behind thoughts, which only the wrong answers have, log-probabilities cannot be held against draws."""
    _label_in_baseline(s)
    for document in s["documents"]:
        document["thoughts"] = [5 if document["label"] == 1 else None] * len(document["logprobs"])


def _shuffled_seed(board: Honest) -> list[Json]:
    """Somebody's draws in another order, as a run of the same model with another seed."""
    run, dice = board.runs["org/honest"], random.Random(3)
    sets = [
        replace(a, clean=tuple(dice.sample(a.clean, DRAWS)), noisy=tuple(dice.sample(a.noisy, DRAWS)))
        for a in run.answer_sets
    ]
    settings = {**run.settings, "sampling": {**run.settings["sampling"], "seed": 1}}
    return [make_submission(replace(run, answer_sets=tuple(sets), settings=settings), texts=True, name="mine")]


def _borrowed_signature(s: Json) -> None:
    """Statements of somebody else's signed run, for the same model and with the same settings."""
    armour = "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"
    start = {
        "hedge_start": 1,
        "run_id": "0" * 32,
        "task": TASK,
        "model": s["entry"]["model"],
        "definition": definition_digest(TASK, s["settings"]),
        "created": "2026-01-01T00:00:00.000000+00:00",
        "version": "1",
    }
    signatures = {"signature": armour, "end_signature": armour}
    s["settings"][SETTING] = {
        "start": start,
        "key": "ssh-ed25519 AAAA",
        "numbers": "0" * 64,
        "texts": "0" * 64,
        **signatures,
    }


def _decoding_of(s: Json) -> Json:
    decoding: Json = s["settings"]["sampled"]["decoding"]
    return decoding


FORGERIES: tuple[Forgery, ...] = (
    # The protocol
    Forgery("a threshold tuned on the reported documents", _edited(_clustering(threshold="oracle")), APART),
    Forgery("a fixed threshold", _edited(_clustering(threshold=0.87)), APART),
    Forgery("a larger share for tuning", _edited(_clustering(tuning={"share": 0.8})), APART),
    Forgery("the best of twelve seeds of the tuning", _edited(_clustering(tuning={"seed": 11})), APART),
    Forgery("another clustering under the edition's name", _edited(_clustering(backend="embed")), EITHER),
    Forgery("another weight in VASE", _edited(_heavier), APART),
    Forgery("another temperature", _edited(_settings(temperature=0.5)), APART),
    Forgery("a seed of one's own choice", _edited(_settings(seed=12)), APART),
    Forgery("no perturbation", _edited(_settings(perturbation={"name": "none"})), APART),
    Forgery("other defaults of decoding", _edited(_settings(decoding="model")), APART),
    Forgery("another prompt", _edited(lambda s: s["settings"]["prompt"].update(user="Think well. {question}")), APART),
    Forgery("the useful half of the draws", _resampled(lambda a: replace(a, clean=_useful(a, 3))), APART),
    Forgery("the useful half of the draws, twice", _resampled(lambda a: replace(a, clean=_useful(a, 3) * 2)), APART),
    Forgery("noisy draws that are the clean ones", _resampled(lambda a: replace(a, noisy=a.clean[::-1])), APART),
    Forgery("digests of pictures left out", _edited(_no_pictures), APART),
    Forgery("the record of the decoding left out", _edited(_left_out("sampled", "decoding")), APART),
    Forgery("the record of the probe left out", _edited(_left_out("sampled", "probe")), APART),
    Forgery("the record of the sampling left out", _edited(_left_out("sampled")), APART),
    # Declining
    Forgery("four answers and nothing but refusals", _declined, ("not ranked", "behind")),
    Forgery("wrong answers left unlabelled", _edited(_hard_unlabelled), EITHER),
    # Labels, clusters, numbers
    Forgery("labels as the detector would have them", _edited(_flipped), GONE),
    Forgery("the same by a judge that nobody has", _edited(_other_judge), APART),
    Forgery("clusters that know the label", _edited(_label_in_clusters), GONE),
    Forgery("an AUROC raised", _bare(lambda s: s["clusterings"]["embed"]["aggregates"]["se"].update(auroc=1.0)), GONE),
    # Answers
    Forgery("answers that a script wrote", _resampled(_scripted), ("refused", "not ranked", "not replayed")),
    Forgery(
        "answers that a better script wrote", _resampled(_well_scripted), ("refused", "not ranked", "not replayed")
    ),
    Forgery("a better model's answers", _edited(lambda s: None), ("not replayed",)),
    # Others' entries
    Forgery("an entry under another name", _stolen(name="mine"), APART),
    Forgery("an entry under another model", _stolen(name="mine", model="org/mine"), GONE),
    Forgery("an entry with noise and other cluster ids", _stolen_with_noise, GONE),
    Forgery("an entry without its texts", _stolen_reworded, GONE),
    Forgery("another seed of a model under another name", _renamed_seeds, EITHER),
    Forgery("four seeds of one model, the best first", _four_seeds, APART),
    Forgery("two who agree on half of the documents", _sybils, APART),
    Forgery("sixty invented documents", _invented, EITHER),
    # Names
    Forgery("a badge in the name", _named("Mine verified ✓ official"), GONE),
    Forgery("a badge's word in other letters", _named("Mine V3rif1ed"), GONE),
    Forgery("a badge's word in Cyrillic letters", _named("Mine оfficial"), GONE),
    Forgery("a name that is turned round", _named("\u202eenim"), GONE),
    Forgery("a name with invisible characters", _named("mi\u200bne"), GONE),
    Forgery("a badge in the model's name", _named("org/mine recomputed", "model"), GONE),
    Forgery("a badge in small capitals", _named("ᴠᴇʀɪꜰɪᴇᴅ ʙʏ ᴛʜᴇ ʙᴏᴀʀᴅ"), GONE),
    Forgery("a badge with a dotless i", _named("Mine verıfıed"), GONE),
    Forgery("a badge with a letter of phonetics", _named("Mine replɑyed"), GONE),
    Forgery("a badge in other words", _named("Mine, validated and confirmed"), GONE),
    Forgery("a badge in German", _named("Mine (verifiziert)"), GONE),
    Forgery("a name that is drawn as nothing", _named("\u1160"), GONE),
    Forgery("a joiner in the model's name", _named("org/ho\u034fnest", "model"), GONE),
    Forgery("a model's name all in Cyrillic letters", _named("org/ауа-8b", "model"), GONE),
    Forgery("a date that says a badge", _named("replayed ✓ official, rank 1", "created"), GONE),
    Forgery("a note that says a badge", _named("Verified and replayed by the maintainers", "note"), GONE),
    Forgery("a setting that is verified by its own word", _bare(_own_word), GONE),
    # What a run always has
    Forgery("a reply that nobody gave", _edited(_replied), GONE),
    Forgery("a log-probability of the baseline answer that knows the label", _edited(_label_in_baseline), APART),
    Forgery("thoughts before every answer, and log-probabilities that know the label", _edited(_thought), SAID),
    Forgery("thoughts before the baseline answer alone", _edited(lambda s: _thought(s, 1)), APART),
    Forgery("scores whose ties are broken by the label", _ties_broken, GONE),
    Forgery("noisy answers chosen by the label", _resampled(_noisy_by_label), APART),
    Forgery("sixty numbers that the task does not have", _bare(_numbers_of_its_own), GONE),
    Forgery("somebody's file under another file name", _copied, GONE),
    Forgery("a badge as the name of a decoding method", _bare(_method("replayed by the maintainers")), GONE),
    Forgery("a decoding method that the edition has not", _bare(_method("contrast of two pictures")), APART),
    Forgery("a badge in the address", _named("https://board.example/verified-and-replayed", "url"), GONE),
    Forgery("a date that is none", _named("9999-99-99", "created"), GONE),
    Forgery("a model of next to no parameters", _bare(lambda s: s["entry"].update(parameters=1e-300)), GONE),
    Forgery("settings of megabytes", _bare(lambda s: s["settings"].update(more="x" * (2 << 20))), GONE),
    # Files that ended a build
    Forgery("a record of the decoding that is a list", _bare(_sampled(decoding=["pure"])), GONE),
    Forgery("a record of what was sent that is a list", _bare(lambda s: _decoding_of(s).update(sent=["x"])), GONE),
    Forgery("a record of the server that is a list", _bare(_sampled(server=["x"])), GONE),
    Forgery("a record of the probe that is a text", _bare(_sampled(probe="x")), GONE),
    Forgery("a record of blank pictures that is a text", _bare(_sampled(image_use={"blank": "x"})), GONE),
    Forgery("shares that are a text", _bare(lambda s: s["settings"].update(outcome={"zero_entropy": "x"})), GONE),
    Forgery("fewer end tokens than answers", _bare(_ends_short("end_logprobs", [0.0])), GONE),
    Forgery("fewer thoughts than answers", _bare(_ends_short("thoughts", [5])), GONE),
    Forgery("a run of a billion answers", _bare(_ends_short("answered_by", [[1_000_000_000, None]])), GONE),
    Forgery("a number of tokens of the baseline answer that knows the label", _edited(_counted_baseline), APART),
    Forgery("a baseline answer that is spelled as no draw, and knows the label", _edited(_spelled_baseline), APART),
    Forgery(
        "log-probabilities of the draws that know the label, without end tokens",
        _edited(_label_in_draws),
        ("refused", "not ranked", "self-reported"),
    ),
    Forgery("draws that are each spelled otherwise, so that none repeats", _resampled(_spelled_apart), EITHER),
    Forgery("numbers of tokens of all answers that know the label", _edited(_counted_all), APART),
    Forgery("draws chosen by the label", _resampled(_chosen), EITHER),
    Forgery("a record of the decoding without its temperature", _edited(_left_out(*_HEAT)), APART),
    Forgery("counts of tokens left out", _edited(_uncounted), EITHER),
    Forgery(
        "a record that says the draws were constrained",
        _edited(lambda s: s["settings"]["sampled"]["decoding"].update(restricted=True)),
        APART,
    ),
    Forgery("blind baselines left out", _bare(_unblind), GONE),
    Forgery("blind baselines that know nothing", _bare(_weak_blind), GONE),
    Forgery("an entry with full stops and noise", _stolen_with_stops, EITHER),
    Forgery("another seed of a model under another name, with noise", _renamed_with_noise, EITHER),
    # A third forger's
    Forgery("a full stop behind the baseline answers that are wrong", _resampled(_stopped_where_wrong), EITHER),
    Forgery(
        "thoughts where the answers are wrong, and log-probabilities that know the label",
        _edited(_thought_where_wrong),
        SAID,
    ),
    Forgery("somebody's draws in another order as another seed", _shuffled_seed, APART),
    Forgery("a badge among the settings that a server refused", _bare(_refused("verified by the maintainers")), GONE),
    Forgery("an address that is turned round", _named("https://board.example/\u202egro", "url"), GONE),
    Forgery("an address with somebody else's in front", _named("https://huggingface.co@mine.example/", "url"), GONE),
    Forgery("a date before there were boards", _named("0001-01-01", "created"), GONE),
    Forgery("a date to come", _named("2999-01-01", "created"), GONE),
    Forgery("a state of trust as a name", _named("Mine (trust: green)"), GONE),
    Forgery("a place as a name", _named("No. 1: Mine"), GONE),
    Forgery("the signed start of somebody else's run", _bare(_borrowed_signature), GONE),
    # What no draw has tested
    Forgery("wrong baseline answers with a full stop that no draw has", _rejudged(_of_wrong(_respelled)), SAID),
    Forgery("the same, of sure wrong answers alone", _rejudged(_of_wrong(_sure_respelled)), SAID),
    Forgery("wrong baseline answers in a sentence that no draw is", _rejudged(_of_wrong(_spoken)), SAID),
    Forgery(
        "wrong baseline answers that are drawn once, and as good as impossible",
        _rejudged(_of_wrong(_drawn_once)),
        EITHER,
    ),
    Forgery("thoughts before the answers of wrong documents", _rejudged(_of_wrong(_thinking)), SAID),
    Forgery("the same, and no two draws alike there", _rejudged(_of_wrong(lambda a: _thinking(_scattered(a)))), SAID),
    Forgery("no two draws alike in wrong documents", _rejudged(_of_wrong(_scattered)), SAID),
    Forgery("noisy answers of wrong documents that nobody else gives", _rejudged(_of_wrong(_foreign_noise)), SAID),
    Forgery("end tokens in a dozen documents alone", _edited(_few_ends), ("refused", "not ranked", "self-reported")),
    # Places of others
    Forgery("an entry permuted, with noise on every text", _stolen_permuted, EITHER),
    Forgery("an entry permuted, as another seed of its model", _permuted_seed, EITHER),
    Forgery("a dozen documents of a model called as an entry is named", _model_of_a_name(12), APART),
    Forgery("the same, of a task that nobody knows", _model_of_a_name(12, "unheard_of"), APART),
    Forgery("a whole run of a model called as an entry is named", _model_of_a_name(N), ("not replayed",)),
    Forgery("a dozen documents of an entry, merged before it", _stolen_part, EITHER, first=True),
    Forgery("a model's name taken first by a run without texts", _name_taken, EITHER, first=True),
    # What is loaded
    Forgery("a module to be imported", _edited(_imported), EITHER),
)
