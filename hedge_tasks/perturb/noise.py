"""The two noises: Albumentations' pictures to the last bit, drawn faster. They are most of the work of a noisy image.

Both work through an image in pieces that fit the cache of a core. For shot noise, everything around the Poisson draws
is a function of 256 grey levels or of a small count, so two tables replace the passes over the whole image.
"""

from __future__ import annotations

import random
from functools import lru_cache

import numpy as np

SMALLEST_SCALE = 1e-5
"""Of shot noise. Below, where its table would be larger than an image, it is left out; no preset comes near."""

# Pixel values at a time. The random draws follow each other as if all were made at once.
_CHUNK = 16_384


def gauss_noise(pixels: np.ndarray, *, sigma: float, p: float, seed: int) -> np.ndarray:
    """Return what `albumentations.GaussNoise(std_range=(sigma, sigma), p=p)` makes of the pixels with this random seed.

    It truncates the noise to whole grey levels, towards zero, and knows 65536 different noises: their seed has 16 bits.

    Args:
        pixels: uint8, shape (height, width, 3); not changed.
        sigma: standard deviation, where 1 is the full range.
        p: probability that the noise is applied at all.
        seed: non-negative integer.
    """
    import cv2

    if not _applies(p, seed):
        return pixels
    cv2.setRNGSeed(int(np.random.default_rng(seed).integers(0, 2**16)))  # OpenCV keeps one generator a thread
    mean, deviation = np.zeros(3, np.float32), np.full(3, sigma, np.float32)
    noisy = np.empty_like(pixels)
    rows = max(1, _CHUNK // pixels[0].size)
    for start in range(0, len(pixels), rows):
        part = slice(start, start + rows)
        samples = np.empty(pixels[part].shape)
        cv2.randn(samples, mean, deviation)
        noise = samples.astype(np.float32) * np.float32(255)
        np.trunc(noise, out=noise)
        noise += pixels[part]
        noisy[part] = np.clip(noise, 0, 255, out=noise)
    return noisy


def shot_noise(pixels: np.ndarray, *, scale: float, p: float, seed: int) -> np.ndarray:
    """Apply the noise of `albumentations.ShotNoise(scale_range=(scale, scale), p=p)` to the pixels with this seed.

    Args:
        pixels: uint8, any shape; not changed.
        scale: of the noise, at least `SMALLEST_SCALE`.
        p: probability that the noise is applied at all.
        seed: non-negative integer.
    """
    if not _applies(p, seed):
        return pixels
    levels, values = _tables(scale)
    generator = np.random.default_rng(np.random.default_rng(seed).integers(0, 2**32 - 1))
    flat = pixels.reshape(-1)
    noisy = np.empty_like(flat)
    for start in range(0, flat.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        np.take(values, generator.poisson(levels[flat[part]]), mode="clip", out=noisy[part])
    return noisy.reshape(pixels.shape)


def _applies(p: float, seed: int) -> bool:
    return p >= 1 or random.Random(seed).random() < p


@lru_cache(maxsize=32)
def _tables(scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Expected count of each grey level, and grey level of each count (the last entry is white, as all beyond it)."""
    import cv2

    # In single precision, step by step as Albumentations does it: another rounding would draw another Poisson count.
    unit = np.arange(256, dtype=np.float32) / np.float32(255)
    levels = ((cv2.pow(unit, 2.2).ravel() + scale * 1e-6) / scale).astype(np.float64)
    linear = np.clip(np.arange(round(1 / scale) + 2, dtype=np.float32) * np.float32(scale), 0, 1)
    values = np.rint(cv2.pow(linear, 1 / 2.2).ravel() * 255).astype(np.uint8)
    levels.flags.writeable = values.flags.writeable = False
    return levels, values
