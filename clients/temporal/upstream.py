"""Punctual in front of a real Temporal server: schedules here, workflows there, one address for client and worker.

Punctual is killed and the Temporal server is started again in between; while it is away, clients that connect anew manage
schedules. At the end the workflow ids that the Temporal server
knows are compared with the times that the schedules had: none is missing, none is there twice, and none overlaps that must not.

All of that twice, side by side: with a Temporal server that allows callbacks to Punctual, until it is started again without
that permission, and with one that never does. How ends of workflows were heard of is counted. The first has two servers on one
PostgreSQL before it, if there is one: schedules are made at one of them, the worker is at the other, which goes on alone when
the first is killed.

Usage: upstream.py <punctual> <temporal> [<database of PostgreSQL>]
"""

import asyncio
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

from temporalio import workflow
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    WorkflowExecutionStatus,
)
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

import ending


@workflow.defn
class Quick:
    @workflow.run
    async def run(self) -> int:
        if workflow.has_last_completion_result():
            return workflow.get_last_completion_result(type_hint=int) + 1
        return 1


@workflow.defn
class Slow:
    @workflow.run
    async def run(self, seconds: float = 3) -> str:
        await asyncio.sleep(seconds)
        return "rested"


@workflow.defn
class Hopping:
    """Goes on as another run, twice: whoever takes it over must know it by more than the request that began it."""

    @workflow.run
    async def run(self, hops: int = 2) -> str:
        await asyncio.sleep(1)
        if hops:
            workflow.continue_as_new(hops - 1)
        return "there"


def free_port() -> int:
    """Below those that connections are given: a server is to find its port free when it is started again."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


class Program:
    """A program that can be killed and started again."""

    def __init__(self, *command: str):
        self.command = command
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)

    def stop(self, kill: bool) -> None:
        self.process.kill() if kill else self.process.terminate()
        self.process.wait(timeout=60)


async def connect(address: str) -> Client:
    for _ in range(300):
        try:
            client = await Client.connect(address)
            await client.count_workflows()
            return client
        except Exception:  # Not up yet: asked again until the time is over.
            await asyncio.sleep(0.2)
    raise RuntimeError(f"{address} does not answer")


# What each schedule starts, with which arguments, how often in seconds, and what if the one before is not over.
OVERLAPS = {
    "all": (Quick, [], 1, ScheduleOverlapPolicy.ALLOW_ALL),
    "skip": (Slow, [], 1, ScheduleOverlapPolicy.SKIP),
    "buffer": (Slow, [], 1, ScheduleOverlapPolicy.BUFFER_ONE),
    # Short enough that what has piled up while a side was away is done soon.
    "line": (Slow, [1.0], 2, ScheduleOverlapPolicy.BUFFER_ALL),
    "cancel": (Slow, [], 2, ScheduleOverlapPolicy.CANCEL_OTHER),
    "terminate": (Slow, [], 2, ScheduleOverlapPolicy.TERMINATE_OTHER),
    "hop": (Hopping, [], 1, ScheduleOverlapPolicy.SKIP),
}


async def create(client: Client) -> None:
    for name, (kind, given, seconds, overlap) in OVERLAPS.items():
        every = ScheduleIntervalSpec(every=timedelta(seconds=seconds))
        await client.create_schedule(
            name,
            Schedule(
                action=ScheduleActionStartWorkflow(kind.run, args=given, id=f"{name}-work", task_queue="work"),
                spec=ScheduleSpec(intervals=[every]),
                policy=SchedulePolicy(overlap=overlap),
            ),
        )


async def grows(client: Client, name: str, by: int) -> None:
    """Waits until the schedule has started so many workflows more."""
    query = f"TemporalScheduledById = '{name}'"
    target = (await client.count_workflows(query)).count + by
    for _ in range(600):
        if (await client.count_workflows(query)).count >= target:
            return
        await asyncio.sleep(0.2)
    raise RuntimeError(f"schedule {name} stands still")


async def manage(temporal: str, address: str) -> None:
    """Looks at schedules and pauses one, as clients do that connect anew, while the Temporal server is away."""
    client = await Client.connect(address)
    found = {item.id async for item in await client.list_schedules()}
    assert found == set(OVERLAPS), found
    handle = client.get_schedule_handle("skip")
    await handle.pause(note="the cluster is away")
    assert (await handle.describe()).schedule.state.paused
    for words in ("list", "describe --schedule-id skip", "toggle --schedule-id skip --unpause --reason again"):
        command = [temporal, "schedule", *words.split(), "--address", address]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    assert not (await handle.describe()).schedule.state.paused


async def settle(client: Client) -> None:
    """Pauses all schedules, and waits until nothing runs and nothing waits."""
    for name in OVERLAPS:
        await client.get_schedule_handle(name).pause()
    for _ in range(600):
        found = [await client.get_schedule_handle(name).describe() for name in OVERLAPS]
        infos = [description.raw_description.info for description in found]
        running = await client.count_workflows("ExecutionStatus = 'Running'")
        if running.count == 0 and not any(info.running_workflows or info.buffer_size for info in infos):
            return
        await asyncio.sleep(0.2)
    raise RuntimeError("workflows do not end")


def runs(port: int, schedule: str) -> dict[str, str]:
    """The starts of a schedule as Punctual has them: the workflow id of each, and how it ended."""
    url = f"http://127.0.0.1:{port}/v1/namespaces/default/runs?schedule_id={schedule}&page_size=1000"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return {run["name"]: run.get("outcome", "none").lower() for run in json.load(answer)["runs"]}


async def compare(client: Client, mode: str, port: int, outages: list[tuple[datetime, datetime]]) -> None:
    for name in OVERLAPS:
        found = [item async for item in client.list_workflows(f"TemporalScheduledById = '{name}'")]
        # A run that was continued as another one is not a start.
        found = [item for item in found if item.status != WorkflowExecutionStatus.CONTINUED_AS_NEW]
        ids = [item.id for item in found]
        assert len(ids) == len(set(ids)), f"{name}: started twice: {sorted(ids)}"
        here = runs(port, name)
        told = (await client.get_schedule_handle(name).describe()).info.num_actions
        assert told == len(here) and set(ids) <= set(here), f"{name}: {told} starts, {sorted(here)} and {sorted(ids)}"
        # While the Temporal server is away a start may be stopped by the next one before it has begun.
        superseded = {"cancel": "cancelled", "terminate": "terminated"}.get(name)
        lost = {id: outcome for id, outcome in here.items() if id not in ids and outcome != superseded}
        assert not lost, f"{name}: not there: {lost}"
        if name in ("all", "line"):
            times = sorted(datetime.fromisoformat(id.removeprefix(f"{name}-work-").replace("Z", "+00:00")) for id in ids)
            every = timedelta(seconds=OVERLAPS[name][2])
            gaps = [b for a, b in zip(times, times[1:]) if b - a != every]
            assert not gaps, f"{name}: lost before {gaps}"
        if name == "all":
            assert all(item.status == WorkflowExecutionStatus.COMPLETED for item in found)
            late = datetime.now(timezone.utc) - times[-1]
            print(f"{mode}: all: {len(ids)} workflows, each second has one, the last {late.total_seconds():.0f} s ago")
            continue
        found.sort(key=lambda item: item.start_time)
        for one, other in zip(found, found[1:]):
            # A terminated run makes room before its workflow has heard of it, which takes until both sides are there.
            limit = other.start_time
            if name == "terminate":
                limit += timedelta(seconds=2)
                met = [end for begin, end in outages if begin <= limit and other.start_time <= end]
                limit = max([limit, *(end + timedelta(seconds=5) for end in met)])
            assert one.close_time <= limit, (
                f"{name}: {one.id} until {one.close_time} and {other.id} from {other.start_time} overlap"
            )
        statuses = {item.status.name for item in found}
        wanted = {"cancel": "CANCELED", "terminate": "TERMINATED"}.get(name, "COMPLETED")
        assert wanted in statuses and len(found) > 2, f"{name}: {statuses} of {len(found)}"
        print(f"{mode}: {name}: {len(found)} workflows of {told} starts, one at a time, {', '.join(sorted(statuses))}")


class Ends:
    """How ends of workflows were heard of, over all servers and all their lives."""

    def __init__(self, ports: list[int]):
        self.ports, self.before = ports, Counter()

    def now(self) -> Counter:
        return sum(map(self.of, self.ports), self.before)

    def of(self, port: int) -> Counter:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()

        def read(name: str) -> Counter:
            found = [line.removeprefix(name).split('"} ') for line in lines if line.startswith(name)]
            return Counter({word: int(count) for word, count in found})

        closed = read('punctual_runs_closed_total{outcome="')
        assert closed["failed"] == 0 and closed["timed_out"] == 0, f"runs failed: {closed}"
        return read('punctual_workflow_ends_total{by="')

    def keep(self, port: int) -> None:
        """The server is about to be killed, and its counts with it."""
        self.before += self.of(port)


ALLOWED = 'callback.allowedAddresses=[{"Pattern":"127.0.0.1:*","AllowInsecure":true}]'


async def story(punctual: str, temporal: str, mode: str, database: str | None) -> None:
    begun = time.monotonic()
    fronts, behind = [free_port() for _ in range(2 if database else 1)], free_port()
    first, last = f"127.0.0.1:{fronts[0]}", f"127.0.0.1:{fronts[-1]}"
    with tempfile.TemporaryDirectory() as folder:
        refusing = (
            temporal, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(behind),
            "--db-filename", str(Path(folder, "temporal.db")), "--log-level", "never",
        )
        allowing = (*refusing, "--dynamic-config-value", ALLOWED)
        upstream = Program(*(allowing if mode == "allowed" else refusing))
        servers = [
            Program(
                punctual, "serve", "--listen", f"127.0.0.1:{port}", "--node", f"node-{port}",
                "--database", database or f"sqlite:{folder}/punctual.db", "--shard-lease", "3s",
                "--temporal-upstream", f"http://127.0.0.1:{behind}", "--worker-lease", "3s", "--log-filter", "error",
            )
            for port in fronts
        ]
        ends, outages = Ends(fronts), []

        async def again(program: Program, kill: bool) -> None:
            """Ends a program and starts it again."""
            begin = datetime.now(timezone.utc)
            await asyncio.to_thread(program.stop, kill)
            if program is upstream:
                await manage(temporal, last)
            elif len(servers) > 1:
                await grows(client, "all", 5)
            program.start()
            await connect(first)
            outages.append((begin, datetime.now(timezone.utc)))

        try:
            client = await connect(last)
            work = dict(task_queue="work", workflows=[Quick, Slow, Hopping], workflow_runner=UnsandboxedWorkflowRunner())
            async with Worker(client, **work):
                await create(await connect(first))
                await grows(client, "all", 5)
                ends.keep(fronts[0])
                await again(servers[0], kill=True)
                await grows(client, "all", 5)
                await again(upstream, kill=False)
                await grows(client, "all", 5)
                await grows(client, "skip", 2)
                if mode == "allowed":
                    by = ends.now()
                    assert by["callback"] > 2 * (by["poll"] + by["look"]), f"few callbacks: {by}"
                    print(f"allowed: ends so far: {dict(by)}")
                    # The permission is gone: what begins from now on is polled for, what is under way is not lost.
                    upstream.command = refusing
                    await again(upstream, kill=False)
                    polled = ends.now()["poll"]
                    await grows(client, "all", 5)
                    await grows(client, "skip", 2)
                    assert ends.now()["poll"] > polled + 2, f"nothing is polled for: {ends.now()}"
                await settle(client)
                await compare(client, mode, fronts[-1], outages)
                by = ends.now()
                assert mode == "allowed" or by["callback"] + by["look"] == 0, f"callbacks were refused: {by}"
                print(f"{mode}: {len(servers)} servers, ends: {dict(by)}, {time.monotonic() - begun:.0f} s")
        finally:
            for server in servers:
                server.stop(kill=True)
            upstream.stop(kill=True)


async def main(punctual: str, temporal: str, database: str | None = None) -> None:
    modes = {"allowed": database, "refused": None}
    stories = [asyncio.wait_for(story(punctual, temporal, *mode), timeout=200) for mode in modes.items()]
    # Each is told to its end, whatever became of the other one.
    for failure in await asyncio.gather(*stories, return_exceptions=True):
        if failure is not None:
            raise failure


if __name__ == "__main__":
    ending.run(main(*sys.argv[1:]))
