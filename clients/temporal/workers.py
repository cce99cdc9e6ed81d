"""The programs of the guide to workers do a thousand scheduled runs, with heartbeats, failures, retries, a cancel and a kill.

workers.py ADDRESS[,ADDRESS]... GUIDE LOGS [LANGUAGE PROGRAM FOLDER]...

The programs are the blocks of the guide, as they stand there. What became of each run is asked of the servers over HTTP, of
each in turn; the workers are at different ones, and one that takes over is at another one than the killed one was.
"""

import collections
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.request

# Shells start what runs in the background deaf to it, and so would the workers be.
signal.signal(signal.SIGINT, signal.default_int_handler)

ADDRESSES, (GUIDE, LOGS) = sys.argv[1].split(","), sys.argv[2:4]
LANGUAGES = [sys.argv[place : place + 3] for place in range(4, len(sys.argv), 3)]

# Each starts once a second, this often: both workers together have a thousand runs to do.
STARTS = 1_000 // len(LANGUAGES) // 25
SCHEDULES = {"report": 15, "card": 5, "declined": 5}

# Longer than anything here takes; whoever waits in vain says for what.
PATIENCE = 180

# Who is asked next, and where the next worker is.
ASKED, JOINED = itertools.cycle(ADDRESSES), itertools.cycle(ADDRESSES)


def ask(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    url = f"http://{next(ASKED)}{path}"
    with urllib.request.urlopen(urllib.request.Request(url, data, method=method), timeout=60) as answer:
        return json.load(answer)


def ours(path):
    return f"/v1/namespaces/default{path}"


def until(what, look):
    """What the look finds, as soon as it finds something."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.1)
    raise SystemExit(f"{what} did not come to be within {PATIENCE} s")


def program(language):
    """The program of the guide in this language."""
    found = re.search(rf"```{language}\n(.*?)```", pathlib.Path(GUIDE).read_text(), re.DOTALL)
    assert found, f"the guide has no program in {language}"
    return found.group(1)


class Worker:
    """A worker of the guide, as a process of its own."""

    def __init__(self, language, interpreter, folder, number):
        ending = {"python": "py", "typescript": "mts"}[language]
        self.file = pathlib.Path(folder) / f"worker.{ending}"
        self.file.write_text(program(language))
        self.log = open(pathlib.Path(LOGS) / f"{language}-{number}.log", "w")
        environment = {**os.environ, "PUNCTUAL_SERVER": next(JOINED), "QUEUE": language}
        self.process = subprocess.Popen(
            [interpreter, self.file], env=environment, cwd=folder, stdout=self.log, stderr=self.log
        )

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Stops as people stop it, and must be gone soon."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)


def create(name, language, handler, given, starts=None, heartbeat=None):
    action = {
        "queue": language,
        "handler": handler,
        "input": {"json": given},
        "retry": {"attempts_max": 3, "backoff_first": "0.1s"},
        "timeouts": {"start_to_close": "120s", **({"heartbeat": heartbeat} if heartbeat else {})},
    }
    schedule = {"action": {"queue": action}, "policies": {"overlap": "allow_all"}}
    if starts:
        schedule |= {"spec": {"intervals": [{"every": "1s"}]}, "remaining_actions": starts}
    ask("POST", ours("/schedules"), {"schedule_id": name, "schedule": schedule})


def create_load(language):
    given = {
        "report": ("send_report", {"customer": 7, "pages": 3, "seconds": 0.02}),
        "card": ("charge", {"card": "good"}),
        "declined": ("charge", {"card": "declined"}),
    }
    for kind, count in SCHEDULES.items():
        for number in range(count):
            create(f"{language}-{kind}-{number}", language, *given[kind], starts=STARTS)


def runs(query):
    return ask("GET", ours(f"/runs?page_size=1000&{query}"))["runs"]


def describe(run):
    return ask("GET", ours(f"/runs/{run['run_id']}"))["run"]


def check_load(language):
    """Every run ended once, as its handler says, after as many attempts as it takes."""
    total = sum(SCHEDULES.values()) * STARTS
    until(f"{total} ended runs of {language}", lambda: len(runs(f"queue={language}&state=closed")) >= total)
    ended = runs(f"queue={language}")
    assert len(ended) == total, f"{len(ended)} runs, expected {total}"
    by_schedule = collections.Counter(run["schedule_id"] for run in ended)
    assert set(by_schedule.values()) == {STARTS}, by_schedule
    times = {(run["schedule_id"], run["nominal_time"]) for run in ended}
    assert len(times) == total, "an occurrence has two runs"
    beating = 0
    for run in map(describe, ended):
        kind = run["schedule_id"].split("-")[1]
        found = (run["outcome"], run["attempt"], run.get("result"), run.get("failure", {}).get("kind"))
        pages = {"json": {"customer": 7, "pages": 3, "first": 0}}
        expected = {
            "report": ("succeeded", 1, pages, None),
            "card": ("succeeded", 2, {"json": "charged"}, None),
            "declined": ("failed", 1, None, "CardDeclined"),
        }[kind]
        assert found == expected, f"{run['run_id']} of {run['schedule_id']}: {found}, expected {expected}"
        beating += "progress" in run
    # SDKs send heartbeats now and then, and none for what has ended meanwhile.
    assert beating > STARTS, f"{beating} runs told of their progress"
    print(f"{language}: {total} runs, each ended once as it should; {beating} with heartbeats", flush=True)


def started(name):
    """Starts a run by hand, and waits until its worker has told how far it is."""
    ask("POST", ours(f"/schedules/{name}/trigger"), {})
    [run] = until(f"the run of {name}", lambda: runs(f"schedule_id={name}"))
    until(f"progress of {name}", lambda: describe(run).get("progress", {}).get("json", 0) >= 1)
    return run


def ended(run):
    return until(f"the end of run {run['run_id']}", lambda: (found := describe(run))["state"] == "closed" and found)


def check_cancel(language):
    name = f"{language}-cancel"
    create(name, language, "send_report", {"customer": 8, "pages": 100_000, "seconds": 0.05}, heartbeat="2s")
    run = started(name)
    ask("POST", ours(f"/runs/{run['run_id']}/cancel"), {})
    run = ended(run)
    assert (run["outcome"], run["attempt"]) == ("cancelled", 1), run
    print(f"{language}: a run was cancelled on its way", flush=True)


def check_kill(language, worker, start):
    name = f"{language}-kill"
    create(name, language, "send_report", {"customer": 9, "pages": 40, "seconds": 0.2}, heartbeat="2s")
    run = started(name)
    worker.kill()
    worker = start()
    run = ended(run)
    assert (run["outcome"], run["attempt"]) == ("succeeded", 2), run
    result = run["result"]["json"]
    assert result["pages"] == 40 and 0 < result["first"] < 40, f"it goes on where the first attempt was: {result}"
    print(f"{language}: a killed worker's run was taken over at page {result['first']}", flush=True)
    return worker


def check_count(total):
    """As many ends as runs: none ended twice."""
    lines = []
    for address in ADDRESSES:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
            lines += answer.read().decode().splitlines()
    ends = sum(float(line.split()[-1]) for line in lines if line.startswith("punctual_runs_closed_total"))
    assert ends == total, f"{ends} ends of {total} runs"


def main():
    workers, counts = {}, collections.Counter()

    def start(language, interpreter, folder):
        counts[language] += 1
        return Worker(language, interpreter, folder, counts[language])

    try:
        for language, *rest in LANGUAGES:
            # Before its queue is there: to a worker that is an empty one.
            workers[language] = start(language, *rest)
            ask("POST", ours("/queues"), {"queue": {"queue": language}})
        for language, *_ in LANGUAGES:
            create_load(language)
        for language, *rest in LANGUAGES:
            check_load(language)
            check_cancel(language)
            workers[language] = check_kill(language, workers[language], lambda: start(language, *rest))
        check_count(len(LANGUAGES) * (sum(SCHEDULES.values()) * STARTS + 2))
        for worker in workers.values():
            worker.stop()
    finally:
        for worker in workers.values():
            worker.kill()


main()
