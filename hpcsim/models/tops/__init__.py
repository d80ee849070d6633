"""Spinning tops."""
