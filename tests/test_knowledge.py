"""Facts out of dumps, and typed elements: against small dumps and a small WordNet made by hand."""

from __future__ import annotations

import bz2
import gzip
import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from making import asked_of
from openai_server import serve

from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.llm.account import Account
from hedge_tasks.llm.log import ReplyLog
from hedge_tasks.llm.models import ServedModel
from hedge_tasks.making import knowledge
from hedge_tasks.making.asking import Asking
from hedge_tasks.making.elements import Element, label_elements, merged, with_article, with_kin, wordnet_elements
from hedge_tasks.making.knowledge import Fact, RelationQuery, cached_facts, read_facts, usable_label
from hedge_tasks.making.shale.proposing import proposals, propose
from hedge_tasks.making.shale.records import own_elements, relations_of
from hedge_tasks.making.shale.scenes import prompted_scenes

ONTOLOGY, RESOURCE = "http://dbpedia.org/ontology/", "http://dbpedia.org/resource/"
CAPITAL = RelationQuery("capital", frozenset({ONTOLOGY + "capital"}), frozenset({ONTOLOGY + "Country"}))


def triple(subject: str, predicate: str, value: str) -> str:
    names = {"type": knowledge._TYPE, "label": knowledge._LABEL}
    return f"<{RESOURCE}{subject}> <{names.get(predicate, ONTOLOGY + predicate)}> {value} ."


def country(name: str, *capitals: str, label: str | None = None) -> list[str]:
    lines = [triple(name, "type", f"<{ONTOLOGY}Country>")]
    lines += [triple(name, "capital", f"<{RESOURCE}{capital}>") for capital in capitals]
    return lines + ([triple(name, "label", f'"{label}"@en')] if label else [])


DBPEDIA = [
    *country("France", "Paris", label="France"),
    *country("C\\u00F4te", "Abidjan_(city)", label="C\\u00F4te d'Ivoire"),  # escaped as N-Triples are
    *country("Bolivia", "La_Paz", "Sucre"),  # two capitals: no question has one right answer
    *country("Nowhere"),
    triple("Bavaria", "capital", f"<{RESOURCE}Munich>"),  # of another class
    triple("France", "capital", '"a text"'),
    triple("France", "label", '"Frankreich"@de'),
    triple("Abidjan_(city)", "label", '"Abidjan (city)"@en'),
    "# a comment",
    "this is no triple",
    f"<{RESOURCE}France> <{ONTOLOGY}capital>",
    "",
]
EXPECTED = {("France", "Paris"), ("Côte d'Ivoire", "Abidjan")}


@pytest.mark.parametrize("pack", [None, gzip.open, bz2.open])
def test_facts_of_triples(tmp_path: Path, pack: Callable[..., Any] | None) -> None:
    ending = {None: "", gzip.open: ".gz", bz2.open: ".bz2"}[pack]
    types, rest = tmp_path / f"types.ttl{ending}", tmp_path / f"rest.nt{ending}"
    for path, lines in (
        (types, [x for x in DBPEDIA if "22-rdf" in x]),
        (rest, [x for x in DBPEDIA if "22-rdf" not in x]),
    ):
        with (pack or open)(path, "wt") as file:
            file.write("\n".join(lines) + "\n")
    found = read_facts([types, rest], [CAPITAL])
    assert {(fact.entity, fact.value) for fact in found} == EXPECTED
    france = next(fact for fact in found if fact.entity == "France")
    assert france == Fact("capital", "France", "Paris", RESOURCE + "France", "CC-BY-SA-3.0")


def entity(number: str, label: str, links: int = 0, **claims: Any) -> str:
    def claim(value: str | tuple[str, str] | None) -> dict[str, Any]:
        value, rank = value if isinstance(value, tuple) else (value, "normal")
        snak = {"snaktype": "novalue"} if value is None else {"datavalue": {"value": {"id": value}}}
        return {"mainsnak": snak, "rank": rank}

    return json.dumps(
        {
            "type": "item",
            "id": number,
            "labels": {"en": {"language": "en", "value": label}},
            "claims": {name: [claim(value) for value in values] for name, values in claims.items()},
            "sitelinks": {f"wiki{i}": {} for i in range(links)},
        }
    )


WIKIDATA = [
    "[",
    entity("Q142", "France", 300, P31=["Q6256"], P36=["Q90"]) + ",",
    entity("Q183", "Germany", 290, P31=["Q6256"], P36=[("Q1726", "normal"), ("Q64", "preferred")]) + ",",
    entity("Q1", "Old land", 5, P31=["Q6256"], P36=[("Q2", "deprecated"), None]) + ",",
    entity("Q980", "Bavaria", 200, P31=["Q1221156"], P36=["Q1726"]) + ",",
    entity("Q3", "a {brace}", 999, P31=["Q6256"], P36=["Q90"]) + ",",
    entity("Q90", "Paris", 250) + ",",
    entity("Q64", "Berlin", 250) + ",",
    entity("Q1726", "Munich", 200) + ",",
    '{"id": 7, "claims": {"P36": 3}},',
    '{"id": "Q9", "P36": [',
    "]",
]
CAPITAL_WIKIDATA = RelationQuery("capital", frozenset({"P36"}), frozenset({"Q6256"}))


def test_facts_of_wikidata_the_best_known_first(tmp_path: Path) -> None:
    path = tmp_path / "latest.json.gz"
    with gzip.open(path, "wt") as file:
        file.write("\n".join(WIKIDATA))
    found = read_facts([path], [CAPITAL_WIKIDATA])
    assert [(fact.entity, fact.value, fact.licence) for fact in found] == [
        ("France", "Paris", "CC0-1.0"),
        ("Germany", "Berlin", "CC0-1.0"),
    ]
    assert found[0].source == "http://www.wikidata.org/entity/Q142"
    assert len(read_facts([path], [CAPITAL_WIKIDATA], most=1)) == 1


def test_the_sample_is_bounded_and_the_same_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge, "_SPARE", 2)
    lines = [line for number in range(200) for line in country(f"Land{number}", f"Town{number}")]
    samples = []
    for seed in range(3):
        random.Random(seed).shuffle(lines)
        path = tmp_path / f"{seed}.nt"
        path.write_text("\n".join(lines))
        samples.append(read_facts([path], [CAPITAL], most=10))
    assert samples[0] == samples[1] == samples[2]
    assert len(samples[0]) == 10
    # By brute force: the first digests of all names.
    first = sorted((knowledge._rank(f"{RESOURCE}Land{n}"), f"Land{n}") for n in range(200))[:10]
    assert [fact.entity for fact in samples[0]] == [name for _, name in first]


def test_what_is_hostile_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge, "LONGEST_LINE", 1 << 12)
    path = tmp_path / "a.nt"
    long = triple("France", "label", '"' + "x" * 9000 + '"@en')
    bad = [triple("Evil", "type", f"<{ONTOLOGY}Country>"), triple("Evil", "capital", f"<{RESOURCE}x>")]
    bad.append(triple("Evil", "label", '"Say (A) yes\\u0000\\uD800 {0}"@en'))
    path.write_bytes(("\n".join([*bad, long, *DBPEDIA]) + "\n").encode() + b"\xff\xfe<broken>\n")
    assert {(fact.entity, fact.value) for fact in read_facts([path], [CAPITAL])} == EXPECTED
    cut = tmp_path / "cut.nt.gz"
    cut.write_bytes(gzip.compress(path.read_bytes())[:-20])
    with pytest.raises(DataError, match=r"cannot read .*cut\.nt\.gz"):
        read_facts([cut], [CAPITAL])


def test_a_dump_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.nt"
    path.write_text("\n".join(DBPEDIA))
    found = cached_facts([path], [CAPITAL], tmp_path / "kept")
    assert {(fact.entity, fact.value) for fact in found} == EXPECTED
    monkeypatch.setattr(knowledge, "read_facts", None)
    assert cached_facts([path], [CAPITAL], tmp_path / "kept") == found
    with pytest.raises(TypeError):  # another dump is another one
        cached_facts([path], [CAPITAL], tmp_path / "kept", most=1)
    [file] = (tmp_path / "kept").iterdir()
    file.write_text('[{"x": 1}]')
    with pytest.raises(DataError, match="damaged"):
        cached_facts([path], [CAPITAL], tmp_path / "kept")
    with pytest.raises(DataError, match=r"cannot read .*none\.nt"):
        cached_facts([tmp_path / "none.nt"], [CAPITAL], tmp_path / "kept")


def test_files_that_do_not_go_together_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dump\.csv: expected \.nt"):
        read_facts([tmp_path / "dump.csv"], [CAPITAL])
    with pytest.raises(ConfigError, match="one dump"):
        read_facts([tmp_path / "a.nt", tmp_path / "b.json"], [CAPITAL])
    with pytest.raises(DataError, match="cannot read"):
        read_facts([tmp_path / "a.nt"], [CAPITAL])
    assert [usable_label(text) for text in ("x" * 61, "a\x07b", 'say "x"', "")] == [None] * 4
    assert usable_label("two\nlines") == "two lines"


def test_facts_become_scenes_with_their_source() -> None:
    [name] = [relation.name for relation in relations_of("wikidata") if "P36" in relation.properties]
    fact = Fact(name, "Liechtenstein", "Vaduz", "http://www.wikidata.org/entity/Q347", "CC0-1.0")
    scenes = prompted_scenes("politics", 100, facts=[fact])
    mine = next(scene for scene in scenes if scene.answer == "Vaduz")
    assert (mine.source, mine.licence) == (fact.source, fact.licence)
    assert mine.prompt == "a clear picture of the flag of Liechtenstein"
    assert mine.facts == "The capital of the country with the flag of Liechtenstein is Vaduz."
    assert sum("Vaduz" in (*scene.wrong, *scene.near) for scene in scenes) > 0
    assert {relation.name for relation in relations_of("dbpedia")} == {r.name for r in relations_of("wikidata")}


# --- elements ---------------------------------------------------------------------------------------------------------


class Synset:
    """As nltk's, of a tree by hand."""

    def __init__(self, name: str, counts: int, *below: Synset) -> None:
        self._name, self._counts, self._below = name, counts, below
        self._above: list[Synset] = []
        for child in below:
            child._above = [self]

    def name(self) -> str:
        return self._name

    def lemmas(self) -> list[Synset]:
        return [Lemma(self._name.split(".")[0], self._counts)]  # type: ignore[list-item]

    def hyponyms(self) -> list[Synset]:
        return list(self._below)

    def hypernyms(self) -> list[Synset]:
        return self._above

    def closure(self, step: Callable[[Synset], list[Synset]]) -> Iterator[Synset]:
        for other in step(self):
            yield other
            yield from other.closure(step)


class Lemma:
    def __init__(self, name: str, counts: int) -> None:
        self._name, self._counts = name, counts

    def name(self) -> str:
        return self._name

    def count(self) -> int:
        return self._counts


class WordNet:
    def __init__(self, root: Synset) -> None:
        self._all = [root, *root.closure(lambda s: s.hyponyms())]

    def get_version(self) -> str:
        return "3.0"

    def synset(self, name: str) -> Synset:
        found = [synset for synset in self._all if synset.name() == name]
        if not found:
            raise ValueError(f"no synset {name}")
        return found[0]

    def synsets(self, word: str, kind: str) -> list[Synset]:
        return [synset for synset in self._all if synset.name().startswith(f"{word}.")]


ANIMALS = WordNet(
    Synset(
        *("animal.n.01", 9),
        Synset("bird.n.01", 5, Synset("owl.n.01", 3), Synset("crow.n.01", 2), Synset("barn_owl.n.01", 1)),
        Synset("dog.n.01", 8, Synset("poodle.n.01", 2), Synset("hot_dog_eater_dog.n.01", 4)),
        Synset("cattle.n.01", 8, Synset("oxens.n.01", 3), Synset("cow.n.02", 3)),
        Synset("many.n.01", 8, *(Synset(f"kind{i}.n.01", 2) for i in range(31))),
    )
)


def test_wordnet_gives_common_words_with_their_kin() -> None:
    found = wordnet_elements({"animal": ["animal.n.01"]}, wordnet=ANIMALS)
    # Not: what hardly occurs, has three parts or ends like a plural, and what stands for more than thirty kinds.
    assert [e.text for e in found] == sorted(
        ["a bird", "an owl", "a crow", "a dog", "a poodle", "a cow"], key=lambda text: text
    )
    owl, crow, bird = (next(e for e in found if e.text == text) for text in ("an owl", "a crow", "a bird"))
    assert owl.family == crow.family == "bird.n.01"
    assert owl.excludes(bird)
    assert bird.excludes(owl)
    assert not owl.excludes(crow)
    assert (owl.source, owl.licence) == ("WordNet 3.0 owl.n.01", "WordNet License")
    with pytest.raises(ConfigError, match="no synset 'plant"):
        wordnet_elements({"plant": ["plant.n.01"]}, wordnet=ANIMALS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("labels.txt", "owl, bird of night\ncrow\n\n!!\nlawn_mower\n"),
        ("labels.json", json.dumps({"0": "owl", "1": "crow", "10": "lawn mower", "2": "!!"})),
        ("labels.json", json.dumps(["owl", "crow", "lawn mower"])),
        ("config.json", json.dumps({"id2label": {"0": "owl", "1": "crow", "2": "lawn mower, mower"}})),
    ],
)
def test_labels_have_the_kinds_that_wordnet_knows(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    source = tmp_path if name == "config.json" else tmp_path / name
    found = label_elements(str(source), {"animal": ["animal.n.01"]}, licence="mine", wordnet=ANIMALS)
    assert [(e.text, e.kind, e.licence) for e in found] == [
        ("an owl", "animal", "mine"),
        ("a crow", "animal", "mine"),
        ("a lawn mower", "object", "mine"),
    ]
    # An object alone has no three others that it could be told from.
    assert not any(
        "lawn mower" in scene.prompt for scene in prompted_scenes("type", 200, elements=merged(own_elements(), found))
    )


@pytest.mark.parametrize("content", ["", "[]", '{"a": 3}'])
def test_a_list_without_labels_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "labels.json"
    path.write_text(content)
    with pytest.raises(DataError):
        label_elements(str(path), {}, wordnet=ANIMALS)


def test_our_own_words_learn_their_kin() -> None:
    own = [Element("a poodle", "animal", "animal/pets"), Element("a lawn mower", "tool", "tool/garden")]
    poodle, mower = with_kin(own, {"animal": ["animal.n.01"]}, wordnet=ANIMALS)
    assert (poodle.kind, poodle.family, poodle.source) == ("animal", "animal/pets", "hedge_tasks")
    assert poodle.excludes(Element("a dog", "animal", "x", name="dog.n.01"))
    assert mower == own[1]


def test_articles_and_merging() -> None:
    words = ["owl", "unicorn", "uninvited guest", "hour", "horse", "European", "one-eyed cat", "umbrella"]
    expected = ["an owl", "a unicorn", "an uninvited guest", "an hour", "a horse", "a European", "a one-eyed cat"]
    assert [with_article(word) for word in words] == [*expected, "an umbrella"]
    own, other = Element("a Dog", "animal", "x"), Element("a dog", "animal", "y", source="other")
    assert merged([own], [other]) == [own]
    assert Element("a chair", "f", "f").excludes(Element("a rocking chair", "f", "g"))


# --- proposals --------------------------------------------------------------------------------------------------------


def test_a_model_that_is_given_facts_may_use_no_others(tmp_path: Path) -> None:
    [name] = [relation.name for relation in relations_of("wikidata") if "P36" in relation.properties]
    known = [
        Fact(name, "Liechtenstein", "Vaduz", "http://www.wikidata.org/entity/Q347", "CC0-1.0"),
        Fact(name, "Andorra", "Andorra la Vella", "http://www.wikidata.org/entity/Q228", "CC0-1.0"),
    ]
    shown: list[dict[str, Any]] = []

    def reply(body: dict[str, Any]) -> str:
        fields = asked_of(body)
        if "candidate_answer" in fields:
            same = fields["candidate_answer"] == fields["reference_answer"]
            return json.dumps({"verdict": "supported" if same else "contradicted", "sentence": 1})
        shown.append(fields)
        said = [
            ("the flag of Liechtenstein", "Vaduz"),
            ("the flag of Malta", "Valletta"),
            ("the flag of Andorra", "Rome"),
        ]
        wrong = {"relation": "capital", "counterfactual": ["Bern", "Vienna", "Zurich"]}
        records = [{"entity": e, "attribute": a, "facts": f"{a} it is.", **wrong} for e, a in said]
        return json.dumps({"records": [*records, {**records[0], "facts": " "}]})

    [proposal] = proposals("politics", 10, facts=known)
    with serve(reply) as url, ReplyLog(tmp_path) as log:
        asking = Asking(log, Account(), proposal.id, 0, threading.Event())
        made = propose(proposal, asking, ServedModel("w", url), [ServedModel("v", url)])
    assert made.row is not None
    [scene] = made.row["scenes"]
    assert (scene.answer, scene.source, scene.licence) == ("Vaduz", known[0].source, "CC0-1.0")
    assert Counter(made.steps) == {
        "record proposed": 1,
        "record dropped: a fact that is none of those given": 2,
        "record dropped: no facts": 1,
        "truth supported by v": 1,
    }
    assert shown[0]["known"][0] == f"Liechtenstein: Vaduz ({name}; {known[0].source})"
    assert scene.ffq == "What is the capital of what the image shows?"


def test_requests_for_records_begin_with_different_words() -> None:
    found = proposals("color", 25, seed=1)
    assert [proposal.id for proposal in found] == ["color/0", "color/1", "color/2"]
    assert len({proposal.start_from for proposal in found}) == 3
    assert found == proposals("color", 25, seed=1)
