"""How time and memory grow with rows, columns and directions; writes ``docs/performance.md``.

``python -m benchmarks.growth`` measures what is missing and goes on where it stopped. Every cell
runs in a process of its own, so that its peak memory is its own. ``benchmarks.growth.device``
measures the same code on an accelerator.
"""
