"""Which documents experts label: the plan, the page and the file that comes back."""
