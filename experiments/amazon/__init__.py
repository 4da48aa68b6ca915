"""The Amazon reviews: what is learned in some domains, used in another."""
