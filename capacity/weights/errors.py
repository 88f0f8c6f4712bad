"""What stops a fetch, in one line for whoever reads the pod's log."""


class FetchError(Exception):
    """The weights can't be had: what is wrong, and what to do."""


class TransferError(Exception):
    """A connection broke or the source answered with a passing error: worth another try from where it stopped."""
