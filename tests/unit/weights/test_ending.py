"""SIGTERM at every step of waiting for it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
AT_EVERY_STEP = """
import os, signal, sys, threading
from capacity.weights.ending import Ending

def interrupted(step):
    ending, seen = Ending(), []
    ending.ready = True
    def trace(frame, event, argument):
        seen.append(event)
        if len(seen) == step:
            signal.raise_signal(signal.SIGTERM)
        return trace
    late = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM))
    late.start()
    sys.settrace(trace)
    ending.wait()
    sys.settrace(None)
    late.join()

for step in range(1, 16):
    interrupted(step)
"""


def test_a_signal_at_any_step_ends_the_wait():
    done = subprocess.run([sys.executable, "-c", AT_EVERY_STEP], cwd=ROOT, timeout=30, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_before_it_is_ready_the_process_ends_with_the_signals_code():
    script = "from capacity.weights.ending import Ending; import signal; Ending(); signal.raise_signal(signal.SIGTERM)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, timeout=30, env=os.environ).returncode == 143
