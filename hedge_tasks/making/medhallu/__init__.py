"""MedHallu's construction (Pandit et al. 2025, section 3): wrong answers that models take for the true ones."""
