"""SHALE's construction (paper section 3.2, appendix A): `hedge make shale`.

    records       words, facts, fact records, and scenes: records in the templates of their aspect
    scenes        records out of pools
    proposing     fact records that a language model proposes
    drawing, drawn    pictures of scenes by code, and whether a noisy one still shows its scene
    pictures      generating, inducing, checking; what is accepted, rejected, or left to people
    items         the questions of accepted scenes
    construction  all of it in its order; `command` writes the set

`elements.json` has our own words by type, `templates.json` the templates for image generators that take prompts, and
`pools.json` those of what can be drawn by code.
"""
