"""SHALE's construction (paper section 3.2, appendix A): `hedge make shale`.

    records     fact records, and scenes: records in the templates of their aspect
    scenes      records out of pools
    drawing     pictures of scenes by code, and whether a noisy one still shows its scene
    proposing   fact records that a language model proposes
    pictures    generating, inducing, checking; what is accepted, rejected, or left to people
    blind       which questions a model answers without the picture
    items       the questions of accepted scenes, with answers and letters balanced
    report      what was made, as tables, with a card and a queue for people
    making      all of it in its order

`elements.json` has our own words by type, `templates.json` the templates for image generators that take prompts, and
`pools.json` those of what can be drawn by code.
"""
