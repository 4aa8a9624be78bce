"""The certificate: what is claimed about the two distances, at what level, on what assumption.

`Certificate` is the record; `certify` makes it from moved rows. The search asks for one side at a
time, with `certify_inputs` and `certify_outputs`.
"""

from __future__ import annotations

from elsewise.certificate._certify import certify, certify_inputs, certify_moves, certify_outputs
from elsewise.certificate._numbers import Reached, cutoffs, share_limit
from elsewise.certificate._record import Certificate, Evidence
from elsewise.certificate._wording import (
    interval_text,
    move_sentence,
    probability_text,
    reached_sentence,
    stayed_lines,
)
from elsewise.request import Kind, Verdict

__all__ = [
    "Certificate",
    "Evidence",
    "Kind",
    "Reached",
    "Verdict",
    "certify",
    "certify_inputs",
    "certify_moves",
    "certify_outputs",
    "cutoffs",
    "interval_text",
    "move_sentence",
    "probability_text",
    "reached_sentence",
    "share_limit",
    "stayed_lines",
]
