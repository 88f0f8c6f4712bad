"""Two processes never do side by side what only one may do."""

import threading

from local.alone import alone


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
