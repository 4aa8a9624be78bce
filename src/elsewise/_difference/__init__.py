"""Why two samples are scored differently: the change of a model's outputs, by attribute.

`difference` takes two frames (:mod:`_samples`), matches their rows (:mod:`_matching`), attributes
the change of the outputs along the pairs (:mod:`_attribution`), says how sure that is
(:mod:`_evidence`) and returns a `Difference` (:mod:`_answer`). The package is not called
``difference``, because a module of that name would shadow the function.
"""

from __future__ import annotations

from elsewise._difference._answer import Difference
from elsewise._difference._attribution import difference

__all__ = ["Difference", "difference"]
