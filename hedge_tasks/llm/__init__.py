"""Asking a model: one way for judges, writers, verifiers, refiners, and for claims and their support.

Whoever asks brings a template and a reading; everything else is here.

    template  prompt files: instructions, fields, examples, the reply's schema, how to ask again
    models    whom to ask: a model behind a server, or an adapter in this process
    servers   where a server is, and which key it is told
    asker     a question until its reply can be read: kept replies first, then requests
    reading   the one JSON object of a reply
    log       kept replies, found again by all that shaped them
    account   what the asking cost: requests, tokens, seconds, and replies that were kept already
"""
