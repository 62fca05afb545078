"""Settings of a run beside those of the HEDGE paper and of its code, setting by setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from hedge_tasks.errors import ConfigError
from hedge_tasks.perturb import build_noise
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.setting_verdicts import mitigation_line

Settings = Mapping[str, Any]

_NOT_SAID = "not said"


@dataclass(frozen=True)
class ProtocolSetting:
    """One setting of a run, of the paper and of the reference code (hedge-bench 0.1.2).

    Attributes:
        setting: what is set.
        run: how the run has it; "unknown" where it does not record that.
        paper: what the paper says, with its section; "not said" where it does not.
        reference: what the code does.
        differs: which of "paper" and "reference" the run differs from; from what the paper leaves open it cannot.
    """

    setting: str
    run: str
    paper: str
    reference: str
    differs: tuple[str, ...] = ()


def fidelity(run: Run, filters: Mapping[str, Settings] | None = None) -> list[ProtocolSetting]:
    """Return every setting of a run that makes a difference to its numbers, beside the paper's and the reference's.

    Args:
        run: a finished run.
        filters: settings of the clusterings that were in fact scored, by name; None takes those that the run records.
    """
    chosen: Mapping[str, Settings] = filters if filters is not None else (run.settings.get("filters") or {})
    return [*_prompt(run), *_sampling(run), *_perturbation(run), *_clustering(chosen), *_labels(run)]


def merged(facts: Sequence[Sequence[ProtocolSetting]]) -> list[ProtocolSetting]:
    """Return the settings of several runs as one list: shared ones once, the others with the number of runs.

    A setting differs where it does in any run.
    """
    by_setting: dict[str, list[ProtocolSetting]] = {}
    for fact in chain.from_iterable(facts):
        by_setting.setdefault(fact.setting, []).append(fact)
    rows: list[ProtocolSetting] = []
    for setting, same_setting in by_setting.items():
        values = list(dict.fromkeys(fact.run for fact in same_setting))
        counted = [f"{value} ({sum(fact.run == value for fact in same_setting)} runs)" for value in values]
        differs = tuple(name for name in ("paper", "reference") if any(name in fact.differs for fact in same_setting))
        text = values[0] if len(values) == 1 else "; ".join(counted)
        rows.append(ProtocolSetting(setting, text, same_setting[0].paper, same_setting[0].reference, differs))
    return rows


def _row(
    setting: str, value: object, paper: str, reference: str, *, like: tuple[bool | None, bool | None]
) -> ProtocolSetting:
    """Return a setting; `like`: whether the run is like the paper and like the reference, None where that is open."""
    names = ("paper", "reference")
    differs = tuple(name for name, alike in zip(names, like, strict=True) if alike is False)
    return ProtocolSetting(setting, "unknown" if value is None else str(value), paper, reference, differs)


def _prompt(run: Run) -> Iterator[ProtocolSetting]:
    protocol = _mapping(run.settings.get("documents")).get("protocol") or "ours"
    yield _row("protocol asked for", protocol, "paper", "reference", like=(None, None))
    name = str(_mapping(run.settings.get("prompt")).get("name", "unknown"))
    theirs = 'the same words; "<image>" stays in the text of two'
    yield _row("prompt", name, "four of Listing 1", theirs, like=(name.startswith("medical_vqa/"), False))


def _sampling(run: Run) -> Iterator[ProtocolSetting]:
    plan = _mapping(run.settings.get("sampling"))
    n, noisy = plan.get("n"), plan.get("n_noisy")
    even = isinstance(n, int) and n == noisy
    yield _row(
        "answers: clean, noisy",
        f"{n}, {noisy}",
        "n, n; 10 in Table 2, 1 to 30 in Table 3 (§4.4)",
        "n, n, but at most 20 noisy",
        like=(even, even and int(n or 0) <= 20),
    )
    hot, cold = plan.get("temperature"), plan.get("baseline_temperature")
    alike = (hot, cold) == (1.0, 0.1)
    yield _row("temperature: samples, baseline", f"{hot}, {cold}", "1.0, 0.1 (§4.3)", "1.0, 0.1", like=(alike, alike))
    default = plan.get("decoding") == "model" and all(plan.get(key) is None for key in ("top_p", "top_k", "min_p"))
    default = default and mitigation_line(_recorded(run)) is None
    yield _row(
        "decoding",
        _decoding(run, plan),
        "each model's default parameters (§4.3)",
        "what vLLM takes from the model",
        like=(default, default),
    )
    limit = plan.get("max_new_tokens")
    yield _row("longest answer, tokens", limit, _NOT_SAID, "512", like=(None, limit == 512))
    answers = [answer for answer_set in run.answer_sets for answer in answer_set.answers]
    n_known = sum(answer.mean_logprob is not None for answer in answers)
    complete = bool(answers) and n_known == len(answers)
    mean = "mean of the raw ones"
    share = mean if complete else f"{n_known} of {len(answers)} answers have them; else equal weights"
    yield _row("log-probabilities", share, "mean of the tokens' (§4.4)", mean, like=(complete, complete))
    side = plan.get("max_image_side")
    size = "the model's own" if side is None else f"at most {side} pixels a side, then the model's own"
    alike = side is None
    yield _row("image size", size, "the model's own (§4.2)", "the model's own", like=(alike, alike))
    if (side := plan.get("perturb_at")) is not None:
        yield _row("perturbed at", f"at most {side} pixels a side", _NOT_SAID, "every pixel", like=(None, False))
    yield _row("seed", plan.get("seed"), _NOT_SAID, "none", like=(None, None))


def _decoding(run: Run, plan: Settings) -> str:
    decoding = str(plan.get("decoding", "unknown"))
    in_words = {"pure": "the temperature only", "model": "the model's default parameters"}.get(decoding, decoding)
    own = [f"{key} {plan[key]}" for key in ("top_p", "top_k", "min_p") if plan.get(key) is not None]
    sent = _mapping(_recorded(run).get("sent"))
    method = mitigation_line(_recorded(run))
    values = ", ".join(f"{key} {value:g}" for key, value in sent.items() if isinstance(value, (int, float)))
    return "; ".join([in_words, *own, *([method] if method else []), *([f"sent: {values}"] if values else [])])


def _recorded(run: Run) -> Settings:
    return _mapping(_mapping(run.settings.get("sampled")).get("decoding"))


def _perturbation(run: Run) -> Iterator[ProtocolSetting]:
    recorded = _mapping(_mapping(run.settings.get("sampling")).get("perturbation"))
    try:
        noise: Settings = build_noise(recorded).settings() if recorded else {}
    except (ConfigError, TypeError):  # another version's, or somebody's slip
        noise = {}
    if "rotate" not in noise:
        name = str(recorded.get("name", "unknown"))
        yield _row("noisy draws", name, "perturbed images (§4.4)", "perturbed images", like=(False, False))
        return
    by = float(noise.get("strength", 1.0))
    own = "" if by == 1 else f" (strength {by:g})"
    low, high = (angle * by for angle in noise["rotate"])
    yield _row(
        "rotation",
        f"{low:g} to {high:g} degrees to either side{own}",
        "0 to 10 degrees (§4.4)",
        "2 to 10 degrees to either side",
        like=((low, high) == (0, 10), (low, high) == (2, 10)),
    )
    frame, shift = bool(noise["fit_output"]), noise["translate"] * by
    yield _row(
        "translation",
        f"{100 * shift:g} %" + (", undone by a frame that grows" if frame else ""),
        "10 % (§4.4)",
        "10 %, undone by a frame that grows",
        like=(not frame and _near(shift, 0.1), frame and _near(shift, 0.1)),
    )
    ranges = {"scale": 0.1, "brightness": 0.2, "contrast": 0.2, "saturation": 0.05, "hue": 0.02}
    values = {key: noise[key] * by for key in ranges}
    alike = all(_near(values[key], expected) for key, expected in ranges.items())
    ours, theirs = (", ".join(f"{key} {amounts[key]:g}" for key in ranges) for amounts in (values, ranges))
    yield _row("scale and colour, ±", ours, theirs, theirs, like=(alike, alike))
    grain = (noise["gauss_noise"] * by, noise["shot_noise"] * by)
    alike = _near(grain[0], 0.07) and _near(grain[1], 0.014)
    theirs = "Gaussian 0.07, Poisson 0.014"
    yield _row("noise", f"Gaussian {grain[0]:g}, Poisson {grain[1]:g}", theirs, theirs, like=(alike, alike))
    chances = tuple(noise[f"p_{step}"] for step in ("affine", "color", "gauss_noise", "shot_noise"))
    yield _row(
        "probability: affine, colour, noises",
        ", ".join(f"{p:g}" for p in chances),
        "not said, so 1",
        "0.5, 0.5, 1, 1",
        like=(chances == (1, 1, 1, 1), chances == (0.5, 0.5, 1, 1)),
    )


def _mapping(value: object) -> Settings:
    """Return a value of a run file where it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def _near(value: float, expected: float) -> bool:
    return abs(value - expected) < 1e-9


def _clustering(filters: Mapping[str, Settings]) -> Iterator[ProtocolSetting]:
    for backend, facts in (("nli", _nli), ("embed", _embed)):
        mine = {name: settings for name, settings in filters.items() if settings.get("backend") == backend}
        yield from _of_filters({name: list(facts(settings)) for name, settings in mine.items()})
    others = [name for name, settings in filters.items() if settings.get("backend") not in ("nli", "embed")]
    if others:
        yield _row("other clusterings", ", ".join(others), "none", "none", like=(False, False))
    with_question = [settings for settings in filters.values() if settings.get("with_question")]
    if with_question:
        places = sorted({str(settings.get("question_position", "before")) for settings in with_question})
        yield _row(
            "question (A+Q)",
            f"{' and '.join(places)} the answer",
            "before (§3.1.2), after (caption of Table 2)",
            "not in the package",
            like=(None, None),
        )
    alphas = sorted({float(settings.get("alpha", 1.0)) for settings in filters.values()})
    alike = all(alpha == 1 for alpha in alphas)
    yield _row("alpha of VASE", ", ".join(f"{a:g}" for a in alphas), "1 (§3.1.4)", "1", like=(alike, alike))
    weight = "sum of exp(l - max l)"
    yield _row("weight of a cluster", weight, "Eq. 1 prints exp of that sum", weight, like=(False, True))


def _of_filters(facts: Mapping[str, Sequence[ProtocolSetting]]) -> list[ProtocolSetting]:
    """Return the settings of several filters: one row where they agree, else one for each, with its name."""
    by_setting: dict[str, dict[str, ProtocolSetting]] = {}
    for name, of_filter in facts.items():
        for fact in of_filter:
            by_setting.setdefault(fact.setting, {})[name] = fact
    rows: list[ProtocolSetting] = []
    for by_filter in by_setting.values():
        if len({fact.run for fact in by_filter.values()}) == 1:
            rows.append(next(iter(by_filter.values())))
        else:
            rows += [replace(fact, setting=f"{fact.setting}, {name}") for name, fact in by_filter.items()]
    return rows


def _nli(settings: Settings) -> Iterator[ProtocolSetting]:
    model = str(settings.get("model", "unknown"))
    alike = model.rpartition("/")[2] == "deberta-v2-xlarge-mnli"
    yield _row("NLI model", model, "deberta-v2-xlarge-mnli (§4.6)", "the caller's", like=(alike, None))
    rule, veto = str(settings.get("rule", "unknown")), bool(settings.get("veto"))
    words = {"relaxed": "no contradiction, not both neutral", "strict": "both directions entail"}
    like = (rule == "strict", rule == "relaxed")
    yield _row("NLI equivalence", words.get(rule, rule), f"{words['strict']} (§3.2)", words["relaxed"], like=like)
    yield _row(
        "contradictions keep clusters apart",
        "yes" if veto else "no",
        "yes, how is not said (§3.2)",
        "no",
        like=(veto, not veto),
    )
    cut = settings.get("max_characters")
    length = "what the model takes" if cut is None else f"{cut} characters"
    yield _row("text shown to the NLI model", length, _NOT_SAID, "200 characters", like=(None, cut == 200))


def _embed(settings: Settings) -> Iterator[ProtocolSetting]:
    model = str(settings.get("model", "unknown"))
    alike = model.rpartition("/")[2] == "all-MiniLM-L6-v2"
    yield _row("embedding model", model, "a SentenceTransformer (§4.6)", "all-MiniLM-L6-v2", like=(None, alike))
    k = settings.get("neighbours", 0)
    yield _row(
        "links",
        "cosine at least τ" + (f", or one of the {k} nearest" if k else ""),
        "cosine at least τ or kNN, k not said (§3.2); Appendix A.1 has clusters of one",
        "cosine at least τ",
        like=(None, not k),
    )
    method, tuning = settings.get("threshold"), _mapping(settings.get("tuning"))
    searched = method in ("cross-fit", "tuned", "oracle")
    space = (tuning.get("search"), tuning.get("low"), tuning.get("high"), tuning.get("trials"))
    as_theirs = searched and space == ("optuna", 0.8, 0.99, 20)
    yield _row(
        "τ: search",
        _search(method, tuning),
        "Optuna, 20 trials in [0.8, 0.99], ROC-AUC (§4.7.1), of which score is not said",
        "Optuna, 20 trials in [0.8, 0.99], AUROC of SE with the default prompt, for all prompts",
        like=(as_theirs, as_theirs and tuning.get("target") == "se"),
    )
    documents = {
        "oracle": "the reported ones",
        "tuned": f"a share of {tuning.get('share')} held out",
        "cross-fit": "all, each without itself and its image",
        "label-free": "all, without labels",
    }.get(str(method), "none")
    yield _row(
        "τ: documents that choose",
        documents,
        "a validation split, fixed for test (§5.3.2), its size not said",
        "the reported ones",
        like=(method == "tuned", method == "oracle"),
    )


def _search(method: object, tuning: Settings) -> str:
    if method == "label-free":
        return f"quantile {tuning.get('quantile')} of the merge heights"
    if method not in ("cross-fit", "tuned", "oracle"):
        return f"fixed at {method}"
    how = {
        "optuna": f"Optuna, {tuning.get('trials')} trials",
        "plateau": "middle of the plateau",
        "exact": "the best of all",
    }.get(str(tuning.get("search")), "unknown")
    return f"{how} in [{tuning.get('low')}, {tuning.get('high')}], AUROC of {str(tuning.get('target')).upper()}"


def _labels(run: Run) -> Iterator[ProtocolSetting]:
    judge = _mapping(_mapping(run.settings.get("documents")).get("judge"))
    model, prompt = judge.get("model"), judge.get("prompt")
    qwen = str(model or "").rpartition("/")[2] == "Qwen3-30B-A3B"
    right_prompt = str(prompt or "").startswith("hedge_bench/")
    right_decoding = tuple(judge.get(key) for key in ("temperature", "top_p", "top_k")) == (0.7, 0.8, 20)
    details = [str(detail) for detail in (model, prompt and f"prompt {prompt}") if detail]
    if isinstance(judge.get("temperature"), (int, float)):
        details.append(f"T {judge['temperature']:g}")
    yield _row(
        "labels",
        str(judge.get("judge", "unknown")) + (f" ({', '.join(details)})" if details else ""),
        "Qwen3-30B-A3B, few-shot, prompt not printed (§4.5)",
        "Qwen3-30B-A3B, its prompt (ours: hedge_bench), T 0.7, top_p 0.8, top_k 20",
        like=(qwen, qwen and right_prompt and right_decoding),
    )
    missing = sum(answers.label is None for answers in run.answer_sets)
    alike = missing == 0
    left_out = f"{missing} of {len(run.answer_sets)}" + (", left out" if missing else "")
    yield _row("answers without a label", left_out, "none", "none: an error", like=(alike, alike))
