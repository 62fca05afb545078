"""Tests against real engines. `make test-engines` sets their environments up; `pytest` alone leaves this folder out.

Everything is in float32 on a CPU. Not covered, here or elsewhere: quantised kernels (those of llama.cpp do not repeat a
seed's draw), kernels of GPUs, and models spread over several.
"""
