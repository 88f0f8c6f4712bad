"""Two processes never do side by side what only one may do."""

import threading
from collections.abc import Sequence

from local import packages
from local.alone import alone
from local.progress import Progress


def test_the_second_begins_when_the_first_has_ended(tmp_path):
    order: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        waiting.set()
        with alone(tmp_path / "lock"):
            order.append("second")

    other = threading.Thread(target=second)
    with alone(tmp_path / "lock"):
        other.start()
        waiting.wait()
        other.join(0.2)
        order.append("first")
    other.join()
    assert order == ["first", "second"]


def test_what_holds_the_lock_is_not_changed(tmp_path):
    lock = tmp_path / "requirements.txt"
    lock.write_text("a==1\n")
    before = lock.stat().st_mtime_ns
    with alone(lock):
        pass
    assert (lock.read_text(), lock.stat().st_mtime_ns) == ("a==1\n", before)


def test_debian_packages_are_installed_once_by_two_who_need_them(tmp_path, monkeypatch):
    installed: list[str] = []
    monkeypatch.setenv("MOONSTACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packages, "missing", lambda names: [one for one in names if one not in installed])

    def install(wanted: Sequence[str], _: object) -> None:
        threading.Event().wait(0.1)
        installed.extend(wanted)

    monkeypatch.setattr(packages, "_install", install)
    both = [threading.Thread(target=packages.ensure, args=(["runc"], Progress())) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert installed == ["runc"]
