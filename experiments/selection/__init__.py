"""What the selector finds where the truth is known, and how far its choice travels."""
