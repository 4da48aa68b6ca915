"""What the selector finds where the truth is known."""
