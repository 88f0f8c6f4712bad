"""Scheduled floors."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from capacity.config import Window
from settings.autoscaling import WEEKDAYS


def scheduled_floor(windows: Iterable[Window], now: datetime, lead_minutes: int) -> int:
    """The highest floor among the windows open now or within the lead time; 0 when none is. `now` is timezone-aware."""
    return max((w.replicas for w in windows if _open(w, now, lead_minutes)), default=0)


def _open(window: Window, now: datetime, lead_minutes: int) -> bool:
    local = now.astimezone(ZoneInfo(window.timezone))
    lead = timedelta(minutes=lead_minutes)
    for day in (local.date() - timedelta(days=1), local.date(), local.date() + timedelta(days=1)):
        if WEEKDAYS[day.weekday()] not in window.days:
            continue
        start = datetime.combine(day, window.start, local.tzinfo)
        end = datetime.combine(day, window.end, local.tzinfo)
        if end <= start:
            end += timedelta(days=1)
        if start - lead <= local < end:
            return True
    return False
