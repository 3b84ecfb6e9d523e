"""Runs of evalcore as a page: one HTML file, and a live view."""
