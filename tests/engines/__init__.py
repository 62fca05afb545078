"""Tests against real engines. `make test-engines` sets their environments up; `pytest` alone leaves this folder out."""
