"""What this machine can reach, why not more, and what would mend it."""

from sns_gate.doctor.examination import examine
from sns_gate.doctor.points import Diagnosis, as_json, say
from sns_gate.doctor.trial import try_clocks

__all__ = ["Diagnosis", "as_json", "examine", "say", "try_clocks"]
