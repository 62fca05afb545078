"""Pictures of a made data set: generated from orders, checked against what they have to show, and stored by key."""
