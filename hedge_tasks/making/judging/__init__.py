"""A judge that can be trained (MediHallDetector: Chen et al. 2024, section 5): its conversations, and its training."""
