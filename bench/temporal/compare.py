"""Punctual and the real Temporal dev server side by side: python compare.py <punctual program> <temporal program> <folder> [part].

The same client asks both the same, one after the other, and creates and describes in turn `ROUNDS` times: ratios are within one
run. Both are durable: a SQLite file each, in the folder, new for each part: a server that was asked for too much does not recover
at once. The dev server has its newer scheduler. Parts: creates, starts, idle; all of them if none is named.
"""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
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
from temporalio.service import RPCError, RPCStatusCode

ROUNDS = 3
CREATED = 1_000
TOGETHER = 64
TRIES = 50
DESCRIBED = 500
IDLE = 10_000
IDLE_SECONDS = 30
# Schedules every second; each step for so many seconds, until one is not kept up with.
STEPS, STEP_SECONDS = [50, 100, 200, 400, 800, 1_600, 3_200, 6_400], 15
# The step at which lateness is compared: both must keep up with it.
LATE_AT = 50
CHASM = ["history.enableCHASMSchedulerCreation=true", "history.chasmSchedulerCreationRolloutPercent=100"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def patiently(ask):
    """Asks again where a server has too much to do; the request's own id keeps that harmless."""
    busy = [
        RPCStatusCode.CANCELLED,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.UNAVAILABLE,
    ]
    for _ in range(TRIES):
        try:
            return await ask()
        except RPCError as error:
            if error.status not in busy:
                raise
            await asyncio.sleep(0.2)
    raise SystemExit(f"a server did not answer in {TRIES} tries")


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
                await patiently(lambda: self.service.create_schedule(request))

        begun = time.monotonic()
        await asyncio.gather(*(one(name) for name in ids))
        return time.monotonic() - begun

    async def describe(self, name):
        request = DescribeScheduleRequest(namespace="default", schedule_id=name)
        return await patiently(lambda: self.service.describe_schedule(request))

    async def delete(self, ids):
        gate = asyncio.Semaphore(TOGETHER)

        async def one(name):
            async with gate:
                request = DeleteScheduleRequest(namespace="default", schedule_id=name)
                await patiently(lambda: self.service.delete_schedule(request))

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
        print(f"  {server.name}: {load} schedules every second: {rate:.0f} starts/s", file=sys.stderr, flush=True)
        best = max(best, rate)
        if rate < 0.9 * load:
            break
    if not late:
        raise SystemExit(f"{server.name} started nothing")
    return best, at(late, 0.5), at(late, 0.99)


@contextlib.asynccontextmanager
async def running(punctual, temporal, folder):
    """Both servers, with nothing in them."""
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        ports = [free_port() for _ in range(4)]
        settings = [word for value in CHASM for word in ("--dynamic-config-value", value)]
        ours = [punctual, "serve", "--listen", f"127.0.0.1:{ports[0]}", "--database", f"sqlite:{fresh}/punctual.db"]
        theirs = [temporal, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(ports[1])]
        theirs += ["--http-port", str(ports[2]), "--metrics-port", str(ports[3]), "--db-filename", f"{fresh}/temporal.db"]
        theirs += ["--log-level", "error", *settings]
        servers = [Server("Punctual", ours, ports[0]), Server("Temporal", theirs, ports[1])]
        try:
            for server in servers:
                await server.connect()
            yield servers
        finally:
            for server in servers:
                server.stop()


def line(what, unit, ours, theirs):
    """A row of the table; `ours` and `theirs` are what was seen in each round."""
    ratios = [(a / b if unit == "/s" else b / a) if min(a, b) else float("inf") for a, b in zip(ours, theirs)]
    spread = f" ({min(ratios):.1f} to {max(ratios):.1f})" if len(ratios) > 1 else ""
    figures = " | ".join(f"{at(values, 0.5):,.1f} {unit}" for values in (ours, theirs))
    print(f"| {what} | {figures} | {at(ratios, 0.5):.1f}{spread} |", flush=True)


async def show_creates(servers):
    rounds = [[await creates(server, turn) for server in servers] for turn in range(ROUNDS)]
    for place, (what, unit) in enumerate([("creates", "/s"), ("describe p50", "ms"), ("describe p99", "ms")]):
        line(what, unit, *([seen[side][place] for seen in rounds] for side in range(2)))


async def show_starts(servers):
    found = [await starts(server) for server in servers]
    late = f"at {LATE_AT} starts/s"
    rows = [("starts kept up with", "/s"), (f"lateness p50 {late}", "ms"), (f"lateness p99 {late}", "ms")]
    for place, (what, unit) in enumerate(rows):
        line(what, unit, *([seen[place]] for seen in found))


async def show_idle(servers):
    found = [await idle(server) for server in servers]
    line(f"processor with {IDLE:,} schedules, none due", "ms a second", *([seen[0] * 1_000] for seen in found))
    line("memory then", "MB", *([seen[1]] for seen in found))


PARTS = {"creates": show_creates, "starts": show_starts, "idle": show_idle}


async def main(punctual, temporal, folder, *names):
    print("| what | Punctual | Temporal | times better |\n|---|---|---|---|", flush=True)
    for name in names or PARTS:
        async with running(punctual, temporal, folder) as servers:
            await PARTS[name](servers)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
