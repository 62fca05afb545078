"""Claims: which sentence of a long answer is hallucinated.

    base           a claim (a span of the baseline answer), its support by a draw, the evidence of an answer's claims
    decomposition  from an answer to its claims: sentences, clauses, objects, labelled spans, ...; one file each
    entailment     whether a draw supports, contradicts or is silent on a claim: nli, words, judge, ...; one file each
    labels         which claims are hallucinated: labelled spans joined by overlap
    blind          what is known of a claim without a look at the image or a draw: what detectors have to beat
    tokens         the log-probabilities of a claim's tokens
    asking         asking a model on a server about many texts at once; what it says is kept

Example:
    >>> from hedge_tasks.claims.base import ENTAILMENT
    >>> from hedge_tasks.claims.decomposition import Passage, build_decomposition
    >>> from hedge_tasks.claims.entailment import SupportQuery, build_entailment
    >>> [found] = build_decomposition("sentence").pieces([Passage("No effusion. The heart is large.")])
    >>> [piece.text for piece in found.pieces]
    ['No effusion.', 'The heart is large.']
    >>> query = SupportQuery(("No effusion.",), ("There is no effusion.", "A mass."))
    >>> build_entailment("words").support([query])[0][0, :, ENTAILMENT].tolist()
    [1.0, 0.0]
"""
