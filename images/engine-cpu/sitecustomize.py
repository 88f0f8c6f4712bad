"""Wait with a nap where vLLM yields: its processes poll their shared memory with sched_yield for a second after every message.

On few cores that takes more time than the model, and on Linux 6.18 two such loops were seen to keep two cores for half a minute
while everything else on the machine stood still, its API server included. A nap costs a step at most 0.2 ms.
"""

import os
import time

NAP_SECONDS = 0.0001


def _nap() -> None:
    time.sleep(NAP_SECONDS)


os.sched_yield = _nap
