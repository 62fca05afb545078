"""Where sentences of reports end: our splitter beside maintained ones, those of them that are installed here.

    python benchmarks/sentences.py [--reports FILE]

The sentences of `tests/report_sentences.py`, which ours was made with, so that its own figure says little; and with
`--reports` (Med-HallMark's report file) how often another splitter finds as many sentences, in answers that models
wrote and in references, whose stops were turned into commas.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from hedge_tasks.data.sentences import whole_sentences

Splitter = Callable[[str], Sequence[str]]


def splitters() -> dict[str, Splitter]:
    """Ours, and `pysbd` and `sentencex` where they can be imported; neither is a dependency."""
    found: dict[str, Splitter] = {"ours": whole_sentences}
    try:
        import pysbd

        found["pysbd 0.3.4"] = pysbd.Segmenter(language="en", clean=False).segment
    except ImportError:
        pass
    try:
        import sentencex

        found["sentencex"] = lambda text: [s for s in sentencex.segment("en", text) if s.strip()]
    except ImportError:
        pass
    return found


def ends(sentences: Sequence[str]) -> set[int]:
    """Where sentences end, counted in characters that are no white space."""
    places, at = set(), 0
    for sentence in sentences[:-1]:
        at += len(re.sub(r"\s", "", sentence))
        places.add(at)
    return places


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=Path)
    reports = parser.parse_args().reports
    from report_sentences import SENTENCES

    print("| splitter | right ends found | wrong ends | texts all right |")
    print("|---|---|---|---|")
    for name, split in splitters().items():
        pairs = [(ends(sentences), ends(split(" ".join(sentences)))) for sentences in SENTENCES]
        right, wrong = sum(len(a & b) for a, b in pairs), sum(len(b - a) for a, b in pairs)
        whole = sum(a == b for a, b in pairs)
        print(f"| {name} | {right} of {sum(len(a) for a, _ in pairs)} | {wrong} | {whole} of {len(pairs)} |")
    if reports:
        rows = json.loads(reports.read_text("utf-8"))
        for field in ("Med-VLM answer", "ground-truth"):
            texts = [row[field] for row in rows if row.get(field)]
            ours = [len(whole_sentences(text)) for text in texts]
            for name, split in splitters().items():
                counts = [len(split(text)) for text in texts]
                same = sum(one == other for one, other in zip(ours, counts, strict=True))
                print(f"{field}: {name} finds {sum(counts)} sentences in {len(texts)} texts; as many as ours in {same}")


if __name__ == "__main__":
    main()
