"""Nanoseconds per get_next of croniter: cases as JSON on standard input, medians as JSON on standard output."""
import json
import statistics
import sys
import time
from datetime import datetime
from zoneinfo import ZoneInfo

from croniter import croniter

ROUNDS = 5
ROUND_SECONDS = 0.05


def one_round(case):
    start = datetime.fromtimestamp(case["start"], ZoneInfo(case["zone"]))
    iterator = croniter(case["expr"], start, second_at_beginning=True)
    calls = 0
    began = time.perf_counter_ns()
    while time.perf_counter_ns() - began < ROUND_SECONDS * 1e9 and calls < 2000:
        # Sparse ones run out of years; a fresh iterator starts over.
        if calls % 15 == 14:
            iterator = croniter(case["expr"], start, second_at_beginning=True)
        iterator.get_next(datetime)
        calls += 1
    return (time.perf_counter_ns() - began) / calls


cases = json.load(sys.stdin)
json.dump({case["name"]: statistics.median(one_round(case) for _ in range(ROUNDS)) for case in cases}, sys.stdout)
