"""ShiftAudit: what differs between domains, what leaks the label, and what to expect in the next.

``leaks`` searches for columns that know the label, ``shift`` tells moving means from moving
effects, ``forecast`` predicts the quality of models in a new domain, and ``verdicts`` says all of
it in sentences.
"""

from ddml_fs.audit.estimator import ShiftAudit

__all__ = ["ShiftAudit"]
