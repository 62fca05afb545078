"""SHALE's construction (paper section 3.2, appendix A): `hedge make shale`.

    scenes        records out of pools, in the templates of their aspect
    drawing, drawn    pictures of scenes by code, and whether a noisy one still shows its scene
    pictures      generating, inducing, checking; what is accepted, rejected, or left to people
    items         the questions of accepted scenes
    construction  all of it in its order; `command` writes the set

`elements.json` has our own words by type, `templates.json` the templates and facts for image generators that take
prompts, and `pools.json` those of what can be drawn by code.
"""
