"""Attempts to break elsewise, generated and listed: inputs, random problems, mutated files."""
