"""The same random schedules here and at the real server: python differential.py <address> <temporal program> [count] [seed].

Each schedule is created paused at both. Whether it is taken, what describe shows of it and when it would start must be the
same. What differs on purpose is listed in DIFFERENCES, and in docs/guides/temporal-cli.md with the reason.
"""

import asyncio
import random
import socket
import subprocess
import sys
import uuid
import zoneinfo
from datetime import datetime, timedelta, timezone

from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload, Payloads, RetryPolicy, WorkflowType
from temporalio.api.enums.v1 import ScheduleOverlapPolicy
from temporalio.api.schedule.v1 import (
    CalendarSpec,
    IntervalSpec,
    Range,
    Schedule,
    ScheduleAction,
    SchedulePolicies,
    ScheduleSpec,
    ScheduleState,
    StructuredCalendarSpec,
)
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import NewWorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import (
    CreateScheduleRequest,
    DeleteScheduleRequest,
    DescribeScheduleRequest,
    ListScheduleMatchingTimesRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

import ending

# The real server with the scheduler that ours follows, see the facts about its two.
CHASM = ["history.enableCHASMSchedulerCreation=true", "history.chasmSchedulerCreationRolloutPercent=100"]
ZONES = ["", "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]
# Windows around changes of clocks, a leap day and the end of a year.
WINDOWS = ["2026-03-01", "2026-10-20", "2028-02-20", "2026-12-15", "2027-06-01"]

# What a schedule may differ in on purpose: how it is found out, and what it is called.
DIFFERENCES = {
    "never": "a schedule whose times can never come is refused here and taken there",
    "fold": "when clocks are set back, no time is left out here; there, east of Greenwich, some of that night are",
    "retry": "what a retry policy leaves out is shown here, as by Temporal's first scheduler, and not by its second",
}


def some_range(rng, low, high):
    start = rng.randint(low, high)
    if rng.random() < 0.4:
        return Range(start=start)
    return Range(start=start, end=rng.randint(start, high), step=rng.choice([0, 1, 1, 2, 3, 7]))


def ranges(rng, low, high, share):
    return [some_range(rng, low, high) for _ in range(rng.randint(1, 2))] if rng.random() < share else []


def structured(rng):
    return StructuredCalendarSpec(
        second=ranges(rng, 0, 59, 0.2),
        minute=ranges(rng, 0, 59, 0.6),
        hour=ranges(rng, 0, 23, 0.7),
        day_of_month=ranges(rng, 1, 31, 0.3),
        month=ranges(rng, 1, 12, 0.2),
        year=[Range(start=2026, end=2029)] if rng.random() < 0.2 else [],
        day_of_week=ranges(rng, 0, 6, 0.3),
        comment=rng.choice(["", "", "a comment"]),
    )


def cron(rng):
    field = lambda low, high: rng.choice(
        ["*", "*", f"*/{rng.randint(2, 9)}", str(rng.randint(low, high)), f"{low}-{rng.randint(low, high)}/2"]
    )
    day = rng.choice(["*", "*", field(1, 28)])
    weekday = rng.choice(["*", "*", "MON-FRI", "SUN", "1,3", "7"])
    text = f"{field(0, 59)} {field(0, 23)} {day} {rng.choice(['*', '*', 'JAN-JUN', '2'])} {weekday}"
    return rng.choice(
        [text, text, text, f"{rng.randint(0, 59)} {text}", f"CRON_TZ=Asia/Tokyo {text}", f"{text} # why",
         "@hourly", "@daily", "@every 90m", "@every 1h/15m", f"{rng.randint(0, 59)} {text} 2026-2028", "61 * * * *",
         "* * *", "@never"]
    )


def texts(rng):
    return CalendarSpec(
        minute=rng.choice(["", "0", "*/15", "5,10", "0-30/10"]),
        hour=rng.choice(["", "*", "9", "9-17", "0,12"]),
        day_of_month=rng.choice(["", "", "1", "31", "*/5"]),
        month=rng.choice(["", "", "January", "jan-mar", "2"]),
        day_of_week=rng.choice(["", "", "Monday", "tue-thu", "7"]),
    )


def interval(rng):
    every = rng.choice([60, 90, 600, 3600, 5400, 86400, 7 * 86400, 1])
    phase = rng.choice([0, 0, 1, every // 2, every - 1, every + 5])
    return IntervalSpec(interval=Duration(seconds=every), phase=Duration(seconds=phase))


def stamp(text, seconds=0):
    when = datetime.fromisoformat(text).replace(tzinfo=timezone.utc) + timedelta(seconds=seconds)
    return Timestamp(seconds=int(when.timestamp()))


def some_spec(rng, window):
    spec = ScheduleSpec(timezone_name=rng.choice(ZONES))
    for kind, make in [("structured_calendar", structured), ("cron_string", cron), ("calendar", texts), ("interval", interval)]:
        if rng.random() < 0.4:
            getattr(spec, kind).extend(make(rng) for _ in range(rng.randint(1, 2)))
    if rng.random() < 0.3:
        spec.exclude_structured_calendar.append(structured(rng))
    if rng.random() < 0.2:
        spec.start_time.CopyFrom(stamp(window, rng.randint(0, 5 * 86400)))
    if rng.random() < 0.2:
        spec.end_time.CopyFrom(stamp(window, rng.randint(86400, 20 * 86400)))
    if rng.random() < 0.1:
        spec.timezone_name = "Europe/Atlantis"
    return spec


def some_schedule(rng, window):
    info = NewWorkflowExecutionInfo(
        workflow_id="random",
        workflow_type=WorkflowType(name="Report"),
        task_queue=TaskQueue(name="random"),
        input=Payloads(payloads=[Payload(metadata={"encoding": b"json/plain"}, data=b"1")]),
    )
    if rng.random() < 0.3:
        info.retry_policy.CopyFrom(RetryPolicy(maximum_attempts=rng.randint(0, 5)))
    if rng.random() < 0.3:
        info.workflow_run_timeout.CopyFrom(Duration(seconds=rng.randint(1, 999)))
    policies = SchedulePolicies(
        overlap_policy=rng.choice([0, 1, 2, 3, 4, 5, 6]),
        pause_on_failure=rng.random() < 0.3,
        keep_original_workflow_id=False,
    )
    if rng.random() < 0.5:
        policies.catchup_window.CopyFrom(Duration(seconds=rng.choice([1, 10, 60, 3600, 400 * 86400])))
    state = ScheduleState(paused=True, notes=rng.choice(["", "for a test"]))
    if rng.random() < 0.3:
        state.limited_actions, state.remaining_actions = True, rng.choice([0, 1, 7])
    return Schedule(
        spec=some_spec(rng, window), action=ScheduleAction(start_workflow=info), policies=policies, state=state
    )


async def answers(client, name, schedule, window):
    """What a server says to one schedule: a refusal, or what it shows and when it would start."""
    service = client.workflow_service
    try:
        await service.create_schedule(
            CreateScheduleRequest(
                namespace="default",
                schedule_id=name,
                request_id=str(uuid.uuid4()),
                identity="differential",
                schedule=schedule,
            )
        )
    except RPCError as error:
        return {"refused": error.status.name, "why": error.message}
    shown = await service.describe_schedule(DescribeScheduleRequest(namespace="default", schedule_id=name))
    asked = ListScheduleMatchingTimesRequest(
        namespace="default", schedule_id=name, start_time=stamp(window), end_time=stamp(window, 14 * 86400)
    )
    times = await service.list_schedule_matching_times(asked)
    await service.delete_schedule(DeleteScheduleRequest(namespace="default", schedule_id=name))
    # A phase of nothing is shown as it was sent there, and left out here.
    for interval in shown.schedule.spec.interval:
        interval.phase.SetInParent()
    return {
        "schedule": MessageToDict(shown.schedule, preserving_proto_field_name=True),
        "times": [time.seconds for time in times.start_time],
    }


def compare(ours, theirs, path=""):
    """The first places where two answers differ."""
    if path == ".why":
        return []
    if type(ours) is dict and type(theirs) is dict:
        return [found for key in sorted({*ours, *theirs}) for found in compare(ours.get(key), theirs.get(key), f"{path}.{key}")]
    if ours == theirs:
        return []
    if path == ".times" and ours is not None and theirs is not None:
        odd = sorted({*ours} ^ {*theirs})[:4]
        return [f"{path}: {len(ours)} and {len(theirs)}, first odd {[str(datetime.fromtimestamp(time, timezone.utc)) for time in odd]}"]
    return [f"{path}: here {ours!r}, there {theirs!r}"]


def is_near_fold(time, spec):
    """Whether clocks are set back within two hours of it."""
    zone = zoneinfo.ZoneInfo(spec.get("timezone_name", "UTC"))
    before, after = (datetime.fromtimestamp(time + away, zone).utcoffset() for away in (-7_200, 7_200))
    return after < before


def known_parts(ours, theirs, different):
    """The names of differences that are there on purpose, and what is left besides them."""
    if "never fires" in ours.get("why", "") and theirs.get("times") == []:
        return ["never"], []
    names, rest = [], []
    for found in different:
        if ".retry_policy." in found and found.endswith("there None"):
            names.append("retry")
        elif found.startswith(".times") and is_fold(ours, theirs):
            names.append("fold")
        else:
            rest.append(found)
    return sorted(set(names)), rest


def is_fold(ours, theirs):
    here, there = set(ours["times"]), set(theirs["times"])
    return here > there and all(is_near_fold(time, ours["schedule"]["spec"]) for time in here - there)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def connect(address):
    for _ in range(600):
        try:
            return await Client.connect(address)
        except RuntimeError:
            await asyncio.sleep(0.1)
    raise SystemExit(f"nobody answers at {address}")


async def main(address, program, count, seed):
    port = free_port()
    settings = [word for value in CHASM for word in ("--dynamic-config-value", value)]
    command = [program, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    real = subprocess.Popen([*command, "--http-port", str(free_port()), "--metrics-port", str(free_port()), *settings], stdout=subprocess.DEVNULL)
    try:
        there, here = await connect(f"127.0.0.1:{port}"), await connect(address)
        seen, wrong, known = {"taken": 0, "refused": 0, "times": 0}, 0, {}
        for number in range(count):
            rng = random.Random(f"{seed}-{number}")
            window = rng.choice(WINDOWS)
            schedule = some_schedule(rng, window)
            ours, theirs = await asyncio.gather(
                *(answers(client, f"random-{seed}-{number}", schedule, window) for client in (here, there))
            )
            names, different = known_parts(ours, theirs, compare(ours, theirs))
            for name in names:
                known[name] = known.get(name, 0) + 1
            if different:
                wrong += 1
                print(f"seed {seed}, number {number}:", *different[:4], sep="\n  ")
                print("  of", str(schedule.spec).replace("\n", " "))
            seen["refused" if "refused" in theirs else "taken"] += 1
            seen["times"] += len(theirs.get("times", []))
        print(f"{count} random schedules: {seen['taken']} taken, {seen['refused']} refused, {seen['times']} times compared;",
              f"{wrong} differ, on purpose {known or 'none'}")
        for name in known:
            print(f"  {name}: {DIFFERENCES[name]}")
        raise SystemExit(1 if wrong else 0)
    finally:
        real.kill()
        real.wait()


if __name__ == "__main__":
    given = sys.argv[3:] + ["300", "1"][len(sys.argv) - 3 :]
    ending.run(main(sys.argv[1], sys.argv[2], int(given[0]), given[1]))
