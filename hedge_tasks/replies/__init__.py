"""Reading what a model wrote: one set of rules for every suite and judge.

    read_yes_no     yes or no, also said in a sentence about what was asked
    read_verdict    a digit that stands for a verdict (0 factual, 1 hallucinated, 2 not sure)
    read_option     an option of a multiple-choice question, by letter or text
    read_judgement  the outcome that a judge names
    read_free       an answer in words; `spoken_text` is what of it is judged and compared

Each gives a `Reading`: a value with its basis (see `BASES`), or no value with the reason (see `REASONS`). Refusals,
replies that were cut off before they said it, and thoughts without an end are never an answer. The order of the rules
is in `statements`, what a sentence affirms or denies in `clauses`, their words in `words.json`; `official` reads as the
papers' code does. How often each reader is right is measured on a corpus of replies with known meaning, in
`benchmarks/RESULTS.md`.
"""

from hedge_tasks.replies.free import read_free as read_free
from hedge_tasks.replies.free import spoken_text as spoken_text
from hedge_tasks.replies.labels import Judgement as Judgement
from hedge_tasks.replies.labels import read_judgement as read_judgement
from hedge_tasks.replies.labels import read_verdict as read_verdict
from hedge_tasks.replies.options import read_option as read_option
from hedge_tasks.replies.reading import BASES as BASES
from hedge_tasks.replies.reading import REASONS as REASONS
from hedge_tasks.replies.reading import Reading as Reading
from hedge_tasks.replies.reading import unreadable as unreadable
from hedge_tasks.replies.yes_no import read_yes_no as read_yes_no
