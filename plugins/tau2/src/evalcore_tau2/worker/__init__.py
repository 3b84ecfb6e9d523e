"""What runs inside the toolkit's own environment; loaded there by path, never imported by the plugin but for its pins."""
