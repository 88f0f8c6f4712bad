"""keys.lock.json kept in step with a stack's keys."""

from collections.abc import Mapping

from rules.fingerprint import fingerprint
from settings import key_lock
from settings.key_values import Versions
from settings.settings import Settings


def lock_versions(settings: Settings, found: Mapping[str, Versions]) -> bool:
    """Replace the lock's entries of these keys of the stack by their versions; True if the file changed.

    Raises SettingsError if another environment or purpose has one of them. Generated keys are in no lock.
    """
    if settings.keys.source == "local":
        return False
    pairs = [(key_id, fingerprint(value)) for key_id, versions in found.items() for value in versions.values()]
    mine = list(dict.fromkeys(key_lock.locked(settings, pairs)))
    before = key_lock.load()
    others = [
        key for key in before if (key.environment, key.id) not in {(settings.environment, key_id) for key_id in found}
    ]
    key_lock.store([*others, *mine])
    return set(before) != {*others, *mine}
