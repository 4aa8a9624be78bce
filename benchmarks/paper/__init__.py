"""The paper's experiments: its data, models and questions, every method, its tables and figures.

``make paper`` runs them all and writes ``docs/paper.md``.
"""
