"""Test vectors for classic five-field cron expressions.

The oracle is the library cronsim, which follows Debian cron:

* fields are minute, hour, day of month, month, day of week;
* day of month and day of week are OR-ed when both are restricted, and AND-ed as
  soon as one of the two fields *starts* with a star ("*", "*/2" and "*/10,15"
  start with a star, "15,*/10" does not);
* 0 and 7 are both Sunday; names are JAN-DEC and SUN-SAT in any case;
* an answer is strictly later than the start.

How to run:

    pip install -r requirements.txt
    python3 unix.py > unix.json

`--seed N` and `--count N` change the random seed and the number of cases. The
same seed gives the same file. A count of the features goes to standard error.

Output: an array with one case per line,

    {"expr": ..., "after": start, "expect": [next five instants]}

plus "end": true when the library says that nothing more follows. That never
happens with the terms used here: an expression that can never match (30
February) is refused by the library, and every other one matches again within
the fifty years the library looks ahead.

Everything is in UTC because cron implementations disagree about daylight saving.

Left out on purpose, because dialects differ:

* "x/n" without a range (to the end of the field here, just x elsewhere);
* "x-x/n", which cronsim reads as "x/n";
* ranges that wrap around ("FRI-SUN", "22-2"), which Debian cron refuses;
* L, W and #, which are not classic cron.
"""

import argparse
import json
import random
import sys
from collections import Counter
from datetime import datetime, timedelta, timezone
from importlib.metadata import version

from cronsim import CronSim, CronSimError

CRONSIM_VERSION = "2.8"
INSTANTS = 5

MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
DAYS = "SUN MON TUE WED THU FRI SAT".split()

# Field name: lowest value, highest value, names by value.
FIELDS = {
    "minute": (0, 59, {}),
    "hour": (0, 23, {}),
    "dom": (1, 31, {}),
    "month": (1, 12, {i + 1: name for i, name in enumerate(MONTHS)}),
    "dow": (0, 7, dict(enumerate(DAYS))),
}

# The kinds of expression to mix, each with its share.
RECIPES = {
    "any": 20,          # all day fields at random
    "daily": 10,        # fixed times, no day restriction
    "both days": 20,    # day of month OR day of week
    "star days": 15,    # one day field starts with a star but is restricted: AND
    "only dow": 10,
    "only dom": 8,
    "month end": 9,     # days 29, 30, 31
    "leap day": 8,      # 29 February, with and without a day of week
}


class Writer:
    """Prints random terms and counts what it printed."""

    def __init__(self, rng):
        self.rng = rng
        self.used = set()

    def spell(self, field, *values):
        """The values as text: all as names when possible and wanted, else as numbers."""
        names = FIELDS[field][2]
        if names and all(v in names for v in values) and self.rng.random() < 0.5:
            self.used.add("names")
            case = self.rng.choice([str.upper, str.lower, str.capitalize])
            return [case(names[v]) for v in values]
        if field == "dow" and 7 in values:
            self.used.add("7 as Sunday")
        return [str(v) for v in values]

    def one(self, field):
        low, high, _ = FIELDS[field]
        return self.spell(field, self.rng.randint(low, high))[0]

    def span(self, field):
        low, high, _ = FIELDS[field]
        first, last = sorted(self.rng.sample(range(low, high + 1), 2))
        self.used.add("range")
        return "-".join(self.spell(field, first, last)), last - first

    def step(self, field, width):
        """A step that mostly fits into a range of this width."""
        self.used.add("step")
        low, high, _ = FIELDS[field]
        if self.rng.random() < 0.05:
            return self.rng.randint(1, high - low + 5)
        return self.rng.randint(1, max(2, width // 2))

    def range_step(self, field):
        text, width = self.span(field)
        self.used.add("a-b/n")
        return f"{text}/{self.step(field, width)}"

    def star_step(self, field):
        low, high, _ = FIELDS[field]
        self.used.add("*/n")
        return f"*/{max(2, self.step(field, high - low))}"

    def list(self, field):
        self.used.add("list")
        parts = []
        for _ in range(self.rng.randint(2, 4)):
            kind = self.rng.random()
            if kind < 0.7:
                parts.append(self.one(field))
            elif kind < 0.9:
                parts.append(self.span(field)[0])
            else:
                parts.append(self.range_step(field))
        return ",".join(parts)

    def restricted(self, field):
        """A term that is not a bare star and does not start with one."""
        kind = self.rng.random()
        if kind < 0.4:
            return self.one(field)
        if kind < 0.65:
            return self.list(field)
        if kind < 0.85:
            return self.span(field)[0]
        return self.range_step(field)

    def term(self, field):
        kind = self.rng.random()
        if kind < 0.2:
            return "*"
        if kind < 0.4:
            return self.star_step(field)
        return self.restricted(field)

    def starred(self, field):
        """A restricted term that starts with a star: "*/n", sometimes in a list."""
        text = self.star_step(field)
        if self.rng.random() < 0.25:
            self.used.add("list that starts with a star")
            return f"{text},{self.one(field)}"
        return text

    def clock(self):
        """Minute and hour, mostly fixed so that five answers reach over several days."""
        kind = self.rng.random()
        if kind < 0.2:
            return self.term("minute"), self.term("hour")
        if kind < 0.3:
            return self.one("minute"), self.restricted("hour")
        if kind < 0.4:
            return f"{self.rng.randint(0, 29)},{self.rng.randint(30, 59)}", self.one("hour")
        return self.one("minute"), self.one("hour")

    def expression(self, recipe):
        rng = self.rng
        minute, hour = self.clock()
        dom, month, dow = "*", "*", "*"
        if recipe == "any":
            dom, month, dow = self.term("dom"), self.term("month"), self.term("dow")
        elif recipe == "both days":
            dom, dow = self.restricted("dom"), self.restricted("dow")
            if rng.random() < 0.1:
                self.used.add("star inside a list")
                dom = f"{self.one('dom')},{self.star_step('dom')}"
        elif recipe == "star days":
            if rng.random() < 0.5:
                dom, dow = self.starred("dom"), self.restricted("dow")
            else:
                dom, dow = self.restricted("dom"), self.starred("dow")
        elif recipe == "only dow":
            dow = self.starred("dow") if rng.random() < 0.2 else self.restricted("dow")
        elif recipe == "only dom":
            dom = self.starred("dom") if rng.random() < 0.2 else self.restricted("dom")
        elif recipe == "month end":
            dom = rng.choice(["31", "30", "29", "30,31", "29-31", "31", "*/30"])
            dow = rng.choice(["*", "*", "*", self.restricted("dow"), self.starred("dow")])
        elif recipe == "leap day":
            dom, month = "29", rng.choice(["2", "FEB", "feb"])
            dow = rng.choice(["*", "*", self.one("dow"), self.starred("dow")])
        if recipe not in ("any", "leap day") and rng.random() < 0.3:
            month = self.term("month")
        return " ".join([minute, hour, dom, month, dow])


def stamp(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def random_start(rng):
    first = datetime(2001, 1, 1, tzinfo=timezone.utc)
    last = datetime(2090, 12, 31, 23, 59, 59, tzinfo=timezone.utc)
    moment = first + timedelta(seconds=rng.randint(0, int((last - first).total_seconds())))
    return moment.replace(second=0) if rng.random() < 0.6 else moment


def evaluate(expr, after):
    """The next instants, and whether the library says that no more follow."""
    found = []
    source = CronSim(expr, after)
    while len(found) < INSTANTS:
        try:
            found.append(next(source))
        except StopIteration:
            return found, True
    return found, False


def make_case(rng, recipe, counts):
    while True:
        writer = Writer(rng)
        expr = writer.expression(recipe)
        after = random_start(rng)
        try:
            found, ended = evaluate(expr, after)
            if found and rng.random() < 0.15:
                # Start exactly on a match: it must not be returned again.
                writer.used.add("start on a match")
                after = found[0]
                found, ended = evaluate(expr, after)
        except CronSimError:
            continue  # A date that does not exist, such as 31 April.
        counts.update([f"recipe {recipe}", *sorted(writer.used)])
        if ended:
            counts["end"] += 1
        if found and found[-1].year > 2100:
            counts["answers after 2100"] += 1
        case = {"expr": expr, "after": stamp(after), "expect": [stamp(m) for m in found]}
        if ended:
            case["end"] = True
        return case


def main():
    parser = argparse.ArgumentParser(description="Make test vectors for five-field cron.")
    parser.add_argument("--seed", type=int, default=20240229)
    parser.add_argument("--count", type=int, default=400)
    args = parser.parse_args()
    if version("cronsim") != CRONSIM_VERSION:
        sys.exit(f"needs cronsim {CRONSIM_VERSION}, found {version('cronsim')}")

    rng = random.Random(args.seed)
    counts = Counter()
    recipes = rng.choices(list(RECIPES), weights=RECIPES.values(), k=args.count)
    cases = [make_case(rng, recipe, counts) for recipe in recipes]

    print("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]")
    for name, number in sorted(counts.items()):
        print(f"{number:5}  {name}", file=sys.stderr)


if __name__ == "__main__":
    main()
