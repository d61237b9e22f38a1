"""When a scheduled action is due: at(...), rate(...), cron(...) as Application Auto Scaling writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_UNITS_S = {"minute": 60, "hour": 3600, "day": 86_400}
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (1, 7), (1970, 2199))
SEARCHED_DAYS = 5 * 366


class ScheduleError(Exception):
    """A schedule AWS would refuse."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """One of: a moment, a rate, or the minutes a cron expression allows."""

    zone: ZoneInfo
    once_s: float | None = None
    every_s: float | None = None
    allowed: tuple[frozenset[int], ...] = ()
    """Minute, hour, day of month, month, day of week (1 = Sunday), year."""

    @classmethod
    def parse(cls, text: str, zone_name: str) -> Schedule:
        """From the API's spelling."""
        try:
            zone = ZoneInfo(zone_name)
        except (ZoneInfoNotFoundError, ValueError):
            raise ScheduleError(f"Invalid timezone: {zone_name}") from None
        found = re.fullmatch(r"(at|rate|cron)\((.+)\)", text.strip())
        if not found:
            raise ScheduleError(f"Schedule expression must have the syntax at(), rate() or cron(): {text}")
        kind, inside = found.groups()
        if kind == "at":
            return cls(zone, once_s=_moment(inside, zone))
        if kind == "rate":
            return cls(zone, every_s=_rate(inside))
        return cls(zone, allowed=_cron(inside))

    def after(self, now_s: float) -> float | None:
        """The first moment later than ``now_s``; None when there is none."""
        if self.once_s is not None:
            return self.once_s if self.once_s > now_s else None
        if self.every_s is not None:
            return now_s + self.every_s
        return self._next_allowed(now_s)

    def _next_allowed(self, now_s: float) -> float | None:
        minutes, hours, days, months, weekdays, years = self.allowed
        at = datetime.fromtimestamp(now_s, self.zone).replace(second=0, microsecond=0) + timedelta(minutes=1)
        for _ in range(SEARCHED_DAYS):
            weekday = at.isoweekday() % 7 + 1
            if at.day in days and at.month in months and weekday in weekdays and at.year in years:
                for hour in sorted(hour for hour in hours if hour >= at.hour):
                    for minute in sorted(minutes):
                        if (hour, minute) >= (at.hour, at.minute):
                            return at.replace(hour=hour, minute=minute).timestamp()
            at = (at + timedelta(days=1)).replace(hour=0, minute=0)
        return None


def _moment(text: str, zone: ZoneInfo) -> float:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ScheduleError(f"at() takes yyyy-mm-ddThh:mm:ss, not {text}") from None
    return at.replace(tzinfo=zone).astimezone(UTC).timestamp()


def _rate(text: str) -> float:
    found = re.fullmatch(r"(\d+) (minute|hour|day)s?", text.strip())
    if not found or int(found[1]) < 1:
        raise ScheduleError(f"rate() takes a number and minute(s), hour(s) or day(s), not {text}")
    return float(int(found[1]) * _UNITS_S[found[2]])


def _cron(text: str) -> tuple[frozenset[int], ...]:
    fields = text.upper().split()
    if len(fields) != 6:
        raise ScheduleError("cron() takes six fields: minutes hours day-of-month month day-of-week year")
    for names, index, base in ((_MONTHS, 3, 1), (_DAYS, 4, 1)):
        for number, name in enumerate(names, base):
            fields[index] = fields[index].replace(name, str(number))
    return tuple(_field(field, *bounds) for field, bounds in zip(fields, _RANGES, strict=True))


def _field(text: str, low: int, high: int) -> frozenset[int]:
    values: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        if span in ("*", "?"):
            first, last = low, high
        else:
            start, _, end = span.partition("-")
            if not start.isdigit() or (end and not end.isdigit()):
                raise ScheduleError(f"cron() field not understood: {text}")
            first = int(start)
            last = int(end) if end else (high if step else first)
        if not low <= first <= last <= high or (step and not step.isdigit()):
            raise ScheduleError(f"cron() field out of range: {text}")
        values.update(range(first, last + 1, int(step or 1)))
    return frozenset(values)
