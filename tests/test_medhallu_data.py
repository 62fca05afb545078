"""`hedge data medhallu`: MeSH groups out of NLM's files, and the reference code's prompts out of a user's copy."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from datasets import Dataset

from hedge_tasks.cli import main
from hedge_tasks.errors import DataError
from hedge_tasks.perturb import Wording
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.suites.medhallu.mesh import group_questions, letter_of, read_terms, read_trees
from hedge_tasks.suites.medhallu.official import official_prompts

TREES = {
    "Asthma": ["C08.127.108", "C20.543.480"],
    "Adult": ["M01.060.116"],
    "Humans": ["B01.050.150"],
    "Drug Therapy": ["E02.319"],
    "Female": [],  # a check tag, in no tree
}
QUESTIONS = {
    "Does it help?": ["Adult", "Humans", "Asthma", "Drug Therapy"],  # M 1, B 1, C 2, E 1
    "Is it safe?": ["Drug Therapy", "adult"],  # as often: the first
    "Who knows?": ["Female", "Renamed Since"],
}


def descriptors(folder: Path, kind: str) -> Path:
    if kind == "mtrees.bin":
        lines = "".join(f"{name};{number}\n" for name, numbers in TREES.items() for number in numbers)
        (folder / kind).write_text(lines, "utf-8")
        return folder / kind
    records = "".join(
        f'<DescriptorRecord DescriptorClass="1"><DescriptorUI>D0</DescriptorUI><DescriptorName><String>{name}</String>'
        "</DescriptorName><AllowableQualifiersList><AllowableQualifier><QualifierReferredTo><QualifierName>"
        "<String>therapy</String></QualifierName></QualifierReferredTo></AllowableQualifier></AllowableQualifiersList>"
        + (
            "<TreeNumberList>" + "".join(f"<TreeNumber>{n}</TreeNumber>" for n in of) + "</TreeNumberList>"
            if of
            else ""
        )
        + "<ConceptList><Concept><ConceptName><String>Another name</String></ConceptName></Concept></ConceptList>"
        "</DescriptorRecord>"
        for name, of in TREES.items()
    )
    head = '<?xml version="1.0"?>\n<!DOCTYPE DescriptorRecordSet SYSTEM "desc.dtd">'
    text = f"{head}\n<DescriptorRecordSet>{records}</DescriptorRecordSet>"
    (folder / kind).write_bytes(gzip.compress(text.encode()) if kind.endswith("gz") else text.encode())
    return folder / kind


@pytest.mark.parametrize("kind", ["desc2025.xml", "desc2025.gz", "mtrees.bin"])
def test_tree_numbers_come_from_nlms_files(tmp_path: Path, kind: str) -> None:
    trees = read_trees(descriptors(tmp_path, kind))
    assert trees["asthma"] == ("C08.127.108", "C20.543.480")
    assert "another name" not in trees
    assert "therapy" not in trees


def test_a_question_belongs_to_its_most_frequent_group() -> None:
    trees = {name.lower(): tuple(of) for name, of in TREES.items()}
    found = group_questions(QUESTIONS, trees)
    assert found.letters == {"Does it help?": "C", "Is it safe?": "E"}
    assert found.without == ("Who knows?",)
    assert found.unknown_terms == {"Renamed Since": 1}
    assert found.shares() == {"C": 0.5, "E": 0.5}
    assert group_questions({"q": ["Adult", "Humans", "Drug Therapy"]}, trees, "CDEFN").letters == {"q": "E"}


@pytest.mark.parametrize(
    ("given", "letter"),
    [("C", "C"), ("n", "N"), ("Diseases", "C"), ("chemicals and drugs", "D"), ("techniques", "E"), ("F03.600", "F")],
)
def test_a_group_is_known_by_letter_name_and_tree_number(given: str, letter: str) -> None:
    assert letter_of(given) == letter


def test_a_group_that_mesh_has_not_is_named() -> None:
    with pytest.raises(DataError, match=r"unknown MeSH group 'disease'.*did you mean 'diseases'"):
        letter_of("disease")


@pytest.mark.parametrize("content", [b"<a><b></a>", b"<a/>", b"\x1f\x8b broken", b""])
@pytest.mark.parametrize("name", ["desc.xml", "desc.gz", "mtrees.bin"])
def test_a_damaged_descriptor_file_is_an_error(tmp_path: Path, content: bytes, name: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=name):
        read_trees(tmp_path / name)


def test_entities_that_would_fill_the_memory_are_refused(tmp_path: Path) -> None:
    levels = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    text = f'<!DOCTYPE x [<!ENTITY e0 "{"x" * 100}">{levels}]><x>&e11;</x>'
    (tmp_path / "desc.xml").write_text(text, "utf-8")
    with pytest.raises(DataError, match="no MeSH descriptor file"):
        read_trees(tmp_path / "desc.xml")


@pytest.mark.slow
def test_terms_come_from_either_form_of_pubmedqa(tmp_path: Path) -> None:
    entries = {str(i): {"QUESTION": f"{q} ", "MESHES": terms} for i, (q, terms) in enumerate(QUESTIONS.items())}
    (tmp_path / "ori_pqal.json").write_text(json.dumps(entries), "utf-8")
    rows = [{"question": q, "context": {"meshes": terms}} for q, terms in QUESTIONS.items()]
    Dataset.from_list(rows).to_parquet(tmp_path / "pqa.parquet")
    expected = {question: tuple(terms) for question, terms in QUESTIONS.items()}
    assert read_terms(tmp_path / "ori_pqal.json") == read_terms(tmp_path / "pqa.parquet") == expected
    (tmp_path / "other.json").write_text('{"1": {"QUESTION": "q"}}', "utf-8")
    with pytest.raises(DataError, match="MESHES"):
        read_terms(tmp_path / "other.json")


def test_the_command_writes_the_groups_and_says_how_they_are_shared_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = {str(i): {"QUESTION": q, "MESHES": terms} for i, (q, terms) in enumerate(QUESTIONS.items())}
    (tmp_path / "ori.json").write_text(json.dumps(entries), "utf-8")
    files = ("--descriptors", str(descriptors(tmp_path, "desc2025.xml")), "--pubmedqa", str(tmp_path / "ori.json"))
    assert main(["data", "medhallu", *files, "--out", str(tmp_path / "groups.json")]) == 0
    told = capsys.readouterr().out
    assert "2 of 3 questions have a group" in told
    [diseases] = [line.split() for line in told.splitlines() if line.startswith("C ")]
    assert diseases == ["C", "Diseases", "0.500", "0.259"]
    assert "1 terms are no descriptors of this file, such as Renamed Since" in told
    assert json.loads((tmp_path / "groups.json").read_text("utf-8")) == {"Does it help?": "C", "Is it safe?": "E"}
    assert main(["data", "medhallu", "--out", str(tmp_path / "x")]) == 2
    assert "give --descriptors and --pubmedqa" in capsys.readouterr().err


# --- the reference code's prompts -------------------------------------------------------------------------------------

CODE = (
    '''
import vllm_that_is_not_here

raise SystemExit("never run")

system_prompt = """
{role} 0, 1 and 2 {{}} to pass."""

system_prompt_forced = """
{role} 0 and 1."""

other = "2"

def create_prompt_no_knowledge(question, option1):
    prompt = f"""
Question: {{question}}
Answer: {{option1}}

0, 1 or 2? {{{{}}}}
"""
    return prompt

def create_prompt_with_knowledge(question, option1, knowledge):
    return f"""
World Knowledge: {{knowledge}}
Question: {{question}}
Answer: {{option1}}

0, 1, or 2?"""

def forced(question, answer):
    return f"Question: {{question}}\\nAnswer: {{answer}}\\n0 or 1?"

def unrelated(question, option1, option2):
    return f"Question: {{question}}\\nAnswer: {{option1}} or {{option2}}? 2"
'''.replace("{role}", "Judge whether it is hallucinated. " * 8)
    .replace("{{", "{")
    .replace("}}", "}")
)


def test_the_prompts_of_the_code_are_taken_word_for_word_and_nothing_is_run(tmp_path: Path) -> None:
    (tmp_path / "detection.py").write_text(CODE, "utf-8")
    found = official_prompts(tmp_path / "detection.py")
    role = "\n" + "Judge whether it is hallucinated. " * 8
    assert found["notsure"] == f"{role} 0, 1 and 2 {{}} to pass.\n\n{{question}}\n\n0, 1 or 2? {{}}\n"
    assert found["knowledge_notsure"].endswith("\n\nWorld Knowledge: {context}\n{question}\n\n0, 1, or 2?")
    assert found["zero_shot"] == f"{role} 0 and 1.\n{{question}}\n0 or 1?"
    assert "knowledge" not in found  # the code has no such function


def test_the_command_makes_tasks_that_lmms_eval_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "detection.py").write_text(CODE, "utf-8")
    out = tmp_path / "official"
    assert main(["data", "medhallu", "--official-code", str(tmp_path / "detection.py"), "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "not in this code: knowledge" in told
    assert "MIT" in told
    prompt = load_prompt(f"{out}/prompts.json/knowledge_notsure")
    asked = prompt.user_text(Wording("Question: Q?\nAnswer: A.", "['one', 'two']"))
    assert asked.endswith("World Knowledge: ['one', 'two']\nQuestion: Q?\nAnswer: A.\n\n0, 1, or 2?")
    yaml = (out / "hedge_medhallu_official_knowledge_notsure.yaml").read_text("utf-8")
    assert "parsing: official, not_sure: true" in yaml
    assert "context: knowledge" in yaml
    assert json.loads((out / "prompts.json").read_text("utf-8"))["licence"].startswith("MIT")


@pytest.mark.parametrize(
    ("code", "message"), [("x = (", "no Python code"), ("x = 1", "no prompts of MedHallu's"), ("\0", "detection")]
)
def test_other_code_is_refused(tmp_path: Path, code: str, message: str) -> None:
    (tmp_path / "detection.py").write_text(code, "utf-8")
    with pytest.raises(DataError, match=message):
        official_prompts(tmp_path / "detection.py")
