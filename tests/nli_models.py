"""Small NLI models with random weights, saved as a hub model would be."""

from __future__ import annotations

import hashlib

LABELS = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")
WORDS = ("left", "right", "lung", "heart", "effusion", "small", "large", "none", "there", "is", "a", "no", "yes")
SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")


def deberta(seed=0, positions=64, buckets=16, **options):
    """A DeBERTa-v2 with weights large enough that labels differ."""
    import torch
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

    torch.manual_seed(seed)
    shape = {
        "vocab_size": len(SPECIAL) + len(WORDS),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": positions,
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_buckets": buckets,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "position_biased_input": False,
        "type_vocab_size": 0,
        "initializer_range": 0.6,
        "id2label": dict(enumerate(LABELS)),
        "label2id": {label: i for i, label in enumerate(LABELS)},
    }
    return DebertaV2ForSequenceClassification(DebertaV2Config(**{**shape, **options})).eval()


def save(folder, seed=1, labels=LABELS):
    """A model and its tokenizer in a folder."""
    from tokenizers import Tokenizer, pre_tokenizers, processors
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(WordLevel({token: i for i, token in enumerate(SPECIAL + WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]"
    ).save_pretrained(folder)
    model = deberta(seed, id2label=dict(enumerate(labels)), label2id={label: i for i, label in enumerate(labels)})
    model.save_pretrained(folder)
    return folder


def texts(n, salt=""):
    """Distinct texts of a few words that the tokenizer knows."""
    made = dict.fromkeys(_text(f"{salt}{i}") for i in range(20 * n))
    return list(made)[:n]


def _text(name):
    digest = hashlib.sha256(name.encode()).digest()
    return " ".join(WORDS[byte % len(WORDS)] for byte in digest[1 : 2 + digest[0] % 7])
