"""What the local tools say to the user when something on this machine is not as it must be."""


class LocalError(Exception):
    """One line for the user: what is wrong, and what to do about it; shown without a traceback."""
