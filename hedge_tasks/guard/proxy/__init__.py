"""An OpenAI-compatible server in front of a model, which lets through what a policy does.

settings  how it treats what it gets, and its bounds
requests  what a request asks for, and whether the policy can judge that
replies   answers with their verdicts, as OpenAI's API has them
app       the server's paths
server    the listening socket
"""
