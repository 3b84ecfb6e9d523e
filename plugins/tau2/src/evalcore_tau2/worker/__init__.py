"""What runs inside the toolkit's own environment, loaded there by path; the plugin imports the pins alone."""
