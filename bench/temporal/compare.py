"""Punctual and the real Temporal dev server side by side: python compare.py <punctual program> <temporal program> <folder>.

The same client asks both the same, one after the other, and all in turn `ROUNDS` times: ratios are within one run. Both are
durable: a SQLite file each, in the folder. The dev server has its newer scheduler.
"""

import asyncio
import os
import socket
import subprocess
import sys
import time
import uuid

from google.protobuf.duration_pb2 import Duration
from temporalio.api.common.v1 import WorkflowType
from temporalio.api.enums.v1 import ScheduleOverlapPolicy
from temporalio.api.schedule.v1 import (
    IntervalSpec,
    Schedule,
    ScheduleAction,
    SchedulePolicies,
    ScheduleSpec,
)
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import NewWorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import (
    CreateScheduleRequest,
    DeleteScheduleRequest,
    DescribeScheduleRequest,
)
from temporalio.client import Client

ROUNDS = 3
CREATED = 1_000
TOGETHER = 64
DESCRIBED = 500
IDLE = 10_000
IDLE_SECONDS = 30
# Schedules every second; each step for so many seconds, until one is not kept up with.
STEPS, STEP_SECONDS = [50, 100, 200, 400, 800, 1_600, 3_200], 15
# The step at which lateness is compared: both must keep up with it.
LATE_AT = 50
CHASM = ["history.enableCHASMSchedulerCreation=true", "history.chasmSchedulerCreationRolloutPercent=100"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A running server, and its client."""

    def __init__(self, name, command, port):
        self.name = name
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.address = f"127.0.0.1:{port}"

    async def connect(self):
        for _ in range(600):
            try:
                self.client = await Client.connect(self.address)
                self.service = self.client.workflow_service
                return
            except RuntimeError:
                await asyncio.sleep(0.1)
        raise SystemExit(f"{self.name} does not answer")

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1_000

    async def create(self, ids, spec):
        gate = asyncio.Semaphore(TOGETHER)

        async def one(name):
            info = NewWorkflowExecutionInfo(
                workflow_id=name, workflow_type=WorkflowType(name="Nothing"), task_queue=TaskQueue(name="bench")
            )
            policies = SchedulePolicies(overlap_policy=ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL)
            schedule = Schedule(spec=spec, action=ScheduleAction(start_workflow=info), policies=policies)
            request = CreateScheduleRequest(
                namespace="default", schedule_id=name, request_id=str(uuid.uuid4()), schedule=schedule
            )
            async with gate:
                await self.service.create_schedule(request)

        begun = time.monotonic()
        await asyncio.gather(*(one(name) for name in ids))
        return time.monotonic() - begun

    async def describe(self, name):
        return await self.service.describe_schedule(DescribeScheduleRequest(namespace="default", schedule_id=name))

    async def delete(self, ids):
        gate = asyncio.Semaphore(TOGETHER)

        async def one(name):
            async with gate:
                await self.service.delete_schedule(DeleteScheduleRequest(namespace="default", schedule_id=name))

        await asyncio.gather(*(one(name) for name in ids))

    def stop(self):
        self.process.kill()
        self.process.wait()


YEARLY = ScheduleSpec(cron_string=["0 0 1 1 *"])
SECONDLY = ScheduleSpec(interval=[IntervalSpec(interval=Duration(seconds=1))])


def at(values, share):
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


async def creates(server, turn):
    ids = [f"create-{turn}-{number}" for number in range(CREATED)]
    rate = CREATED / await server.create(ids, YEARLY)
    late = []
    for name in ids[:DESCRIBED]:
        begun = time.monotonic()
        await server.describe(name)
        late.append((time.monotonic() - begun) * 1_000)
    await server.delete(ids)
    return rate, at(late, 0.5), at(late, 0.99)


async def idle(server):
    await server.create([f"idle-{number}" for number in range(IDLE)], YEARLY)
    await asyncio.sleep(20)
    before = server.cpu_seconds()
    await asyncio.sleep(IDLE_SECONDS)
    cost = (server.cpu_seconds() - before) / IDLE_SECONDS
    return cost, server.memory_mb()


async def starts(server):
    """The most starts a second that were kept up with, and how late they were at the first step, in milliseconds."""
    best, late = 0.0, []
    for load in STEPS:
        ids = [f"start-{load}-{number}" for number in range(load)]
        await server.create(ids, SECONDLY)
        await asyncio.sleep(3)
        sample = ids[:: max(1, load // 50)]

        async def counted():
            return sum((await asyncio.gather(*(started(name) for name in sample))))

        async def started(name):
            return (await server.describe(name)).info.action_count

        before, begun = await counted(), time.monotonic()
        await asyncio.sleep(STEP_SECONDS)
        rate = (await counted() - before) / (time.monotonic() - begun) / len(sample) * load
        if load == LATE_AT:
            for name in sample:
                for action in (await server.describe(name)).info.recent_actions:
                    nominal, actual = action.schedule_time, action.actual_time
                    late.append((actual.seconds - nominal.seconds) * 1_000 + (actual.nanos - nominal.nanos) / 1e6)
        await server.delete(ids)
        print(f"  {server.name}: {load} schedules every second: {rate:.0f} starts/s", flush=True)
        best = max(best, rate)
        if rate < 0.9 * load:
            break
    return best, at(late, 0.5), at(late, 0.99)


def start(punctual, temporal, folder):
    ports = [free_port() for _ in range(4)]
    settings = [word for value in CHASM for word in ("--dynamic-config-value", value)]
    ours = [punctual, "serve", "--listen", f"127.0.0.1:{ports[0]}", "--database", f"sqlite:{folder}/punctual.db"]
    theirs = [temporal, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(ports[1])]
    theirs += ["--http-port", str(ports[2]), "--metrics-port", str(ports[3]), "--db-filename", f"{folder}/temporal.db"]
    theirs += ["--log-level", "error", *settings]
    return Server("Punctual", ours, ports[0]), Server("Temporal", theirs, ports[1])


async def main(punctual, temporal, folder):
    servers = start(punctual, temporal, folder)
    try:
        for server in servers:
            await server.connect()
        seen = {server.name: [] for server in servers}
        for turn in range(ROUNDS):
            for server in servers:
                seen[server.name].append(await creates(server, turn))
        lines = []

        def line(what, ours, theirs, unit, spread=""):
            more, less = (ours, theirs) if unit == "/s" else (theirs, ours)
            better = more / less if less else float("inf")
            lines.append(f"| {what} | {ours:,.1f} {unit} | {theirs:,.1f} {unit} | {better:.1f} {spread}|")

        for place, (what, unit) in enumerate([("creates", "/s"), ("describe p50", "ms"), ("describe p99", "ms")]):
            ours, theirs = ([row[place] for row in seen[server.name]] for server in servers)
            ratios = [(a / b if unit == "/s" else b / a) for a, b in zip(ours, theirs)]
            line(what, at(ours, 0.5), at(theirs, 0.5), unit, f"({min(ratios):.1f} to {max(ratios):.1f}) ")
        print(f"creates and describes, {ROUNDS} rounds, done; starts:", flush=True)
        found = [await starts(server) for server in servers]
        for place, (what, unit) in enumerate([("starts kept up with", "/s"), (f"lateness p50 at {LATE_AT}/s", "ms"), (f"lateness p99 at {LATE_AT}/s", "ms")]):
            line(what, found[0][place], found[1][place], unit)
        print(f"{IDLE:,} schedules that are not due:", flush=True)
        found = [await idle(server) for server in servers]
        line(f"processor, {IDLE:,} idle schedules", found[0][0] * 1_000, found[1][0] * 1_000, "ms a second")
        line("memory then", found[0][1], found[1][1], "MB")
        print("| what | Punctual | Temporal | times better |\n|---|---|---|---|", *lines, sep="\n")
    finally:
        for server in servers:
            server.stop()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
