"""Pictures of a made data set: painted from orders, checked against what they have to show, kept by what they are."""
