"""Interfaces for users of other libraries; nothing else in the package imports them."""
