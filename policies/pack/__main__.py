"""The policy pack's entry: the engine starts it, asks, and ends it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pulumi_policy import PolicyPack

from policies.catalogue import RULES
from policies.pack import stack_configuration
from policies.pack.adapter import policies

if __name__ == "__main__":
    stack_configuration.remember()
    PolicyPack("moonstack", policies(RULES))
