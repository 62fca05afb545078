"""Doors for users of other libraries. Each is imported by whoever asks for it, and by nothing else in the package."""
