"""Perturbed inputs for the noisy draws. Imports nothing of lmms-eval; Albumentations is loaded on first use."""

from hedge_tasks.perturb.base import Noise, Wording, build_noise
from hedge_tasks.perturb.image import PRESETS, Perturbation, perturb_image

__all__ = ["PRESETS", "Noise", "Perturbation", "Wording", "build_noise", "perturb_image"]
