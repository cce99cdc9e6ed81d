"""Test vectors for Quartz cron expressions (six or seven fields, seconds first).

Fields: second, minute, hour, day of month, month, day of week and optionally year.
Weekdays are numbered 1 = SUN to 7 = SAT, and exactly one of day of month and day of
week is "?".

Quartz itself is Java and is not used here. Every case is evaluated by two libraries
that were written independently of each other, and is kept only when both agree:

* croniter (Python); for "LW", which it does not know, cronsim (Python);
* croner (JavaScript), with its option for Quartz weekday numbers.

They number weekdays from 0 and spell some terms differently, so a random expression
is made in an abstract form and printed three times: in Quartz spelling (the "expr"
that is recorded), for the Python library and for croner.

    term             Quartz       croniter           croner
    last day         L            L                  L
    days before it   L-3          L, shifted 3 days  L with dayOffset -3
    nearest weekday  15W          15W                15W
    last weekday     LW           LW (cronsim)       LW
    second Friday    6#2, FRI#2   5#2                6#2
    last Friday      6L, FRIL     L5                 6#L
    Saturday         L            6                  7
    from x by n      x/n          x-max/n            x-max/n
    wrapping range   FRI-MON      5-1                6,7,1,2

How to run (needs Node.js 18 or later for the second opinion):

    pip install -r requirements.txt
    npm install --prefix somewhere croner@11.0.0
    NODE_PATH=somewhere/node_modules python3 quartz.py > quartz.json

`--seed N` and `--count N` change the random seed and the number of cases;
`--no-wrap` leaves out ranges that wrap around (documented Quartz: "22-2",
"NOV-FEB"). The same options give the same file. A count of the features goes to
standard error.

Output: an array with one case per line,

    {"expr": ..., "after": start, "expect": [next five instants]}

plus "end": true when nothing more follows, which happens only with a year field.

Everything is in UTC. Left out on purpose:

* 29W, 30W and 31W in months that are too short. Libraries differ: croniter moves to
  the last day of the month, croner skips the month. With months that do have the
  day they are present.
* L-28 and beyond, which would not exist in every month, and "L-3W" (the weekday
  nearest to a day counted from the end), which neither library knows.
* Lists with special terms ("L,15", "1W,15W", "MON#1,FRI#3"), which Quartz refuses.
* Steps on names ("MON-FRI/2"), which Quartz reads in its own way.
* Wrapping ranges with a step, and "x-x" ranges: croniter takes "x-x" for the whole
  field.
* Both day fields restricted or both "?": not valid in Quartz.
* Anything after 2099, where Quartz stops depending on its version. A case that
  would need it is thrown away, and "end" is only said when the year field itself
  ends by 2099.
* Dates that never exist, such as 31 April: an expression may be refused for that.

The libraries differ in one more point, which shows with some seeds (about one case
in a thousand) and not with the default one: croner 11.0.0 loses 1 March when days of
month include both 1 and 31 ("*/15", "31,1"), because 31 February carries over. Such
cases are reported on standard error and left out.
"""

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from importlib.metadata import version

from croniter import CroniterBadDateError, croniter
from cronsim import CronSim

PYTHON_VERSIONS = {"croniter": "6.2.4", "cronsim": "2.8"}
CRONER_VERSION = "11.0.0"
INSTANTS = 5
# Punctual knows the years from 2000, the libraries stop at 2099.
FIRST_YEAR, LAST_YEAR = 2000, 2099
AT_LEAST = 20  # how often every kind of day term has to appear

MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
DAYS = "SUN MON TUE WED THU FRI SAT".split()
MONTH_LENGTH = dict(zip(range(1, 13), (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)))

# Lowest and highest value in the abstract form, where Sunday is 0.
BOUNDS = {
    "second": (0, 59),
    "minute": (0, 59),
    "hour": (0, 23),
    "dom": (1, 31),
    "month": (1, 12),
    "dow": (0, 6),
    "year": (FIRST_YEAR, LAST_YEAR),
}
NAMES = {"month": (MONTHS, 1), "dow": (DAYS, 0)}

# The kinds of day term, taken in turn; nW has the most special cases and comes twice.
DAY_KINDS = [
    "dom *", "dom value", "dom list", "dom range", "dom a-b/n", "dom x/n", "dom */n",
    "dom L", "dom L-n", "dom nW", "dom LW", "dom nW",
    "dow *", "dow value", "dow list", "dow range", "dow wrap", "dow step",
    "dow n#k", "dow NAME#k", "dow nL", "dow NAMEL", "dow L",
]


@dataclass
class Expression:
    """One expression in its spellings, each a dictionary from field name to text."""

    quartz: dict = field(default_factory=dict)
    python: dict = field(default_factory=dict)
    croner: dict = field(default_factory=dict)
    before_last: int = 0     # n of L-n, which both libraries see as L plus a shift
    last_weekday: bool = False
    years: set = None
    used: set = field(default_factory=set)

    def put(self, name, quartz, python, croner=None):
        self.quartz[name] = quartz
        self.python[name] = python
        self.croner[name] = python if croner is None else croner


class Maker:
    def __init__(self, rng, wrap):
        self.rng = rng
        self.wrap = wrap

    # Single values and ranges, printed for all three.

    def name(self, field_name, value):
        names, lowest = NAMES[field_name]
        case = self.rng.choice([str.upper, str.upper, str.lower, str.capitalize])
        return case(names[value - lowest])

    def spell(self, field_name, values, names_allowed=True):
        """The values for Quartz, for Python and for croner."""
        shift = 1 if field_name == "dow" else 0
        numbers = [str(v + shift) for v in values]
        quartz = numbers
        if field_name in NAMES and names_allowed and self.rng.random() < 0.5:
            quartz = [self.name(field_name, v) for v in values]
        return quartz, [str(v) for v in values], numbers

    def value(self, e, field_name, value):
        quartz, python, croner = self.spell(field_name, [value])
        e.put(field_name, quartz[0], python[0], croner[0])

    def list(self, e, field_name):
        low, high = BOUNDS[field_name]
        parts = [[], [], []]
        for _ in range(self.rng.randint(2, 4)):
            if self.rng.random() < 0.75:
                values = [self.rng.randint(low, high)]
            else:
                values = sorted(self.rng.sample(range(low, high + 1), 2))
            for texts, text in zip(parts, self.spell(field_name, values)):
                texts.append("-".join(text))
        e.used.add("list")
        e.put(field_name, *(",".join(texts) for texts in parts))

    def range(self, e, field_name):
        low, high = BOUNDS[field_name]
        values = sorted(self.rng.sample(range(low, high + 1), 2))
        e.used.add("range")
        e.put(field_name, *("-".join(text) for text in self.spell(field_name, values)))

    def wrapping(self, e, field_name):
        low, high = BOUNDS[field_name]
        if not self.wrap:
            self.range(e, field_name)
            return
        last, first = sorted(self.rng.sample(range(low, high + 1), 2))
        quartz, python, _ = self.spell(field_name, [first, last])
        members = [*range(first, high + 1), *range(low, last + 1)]
        _, _, croner = self.spell(field_name, members)
        e.used.add("range that wraps around")
        e.put(field_name, "-".join(quartz), "-".join(python), ",".join(croner))

    def range_step(self, e, field_name):
        low, high = BOUNDS[field_name]
        values = sorted(self.rng.sample(range(low, high + 1), 2))
        step = self.rng.randint(1, max(2, (values[1] - values[0]) // 2))
        texts = self.spell(field_name, values, names_allowed=False)
        e.used.add("a-b/n")
        e.put(field_name, *(f"{'-'.join(text)}/{step}" for text in texts))

    def open_step(self, e, field_name):
        """x/n: from x to the end of the field."""
        low, high = BOUNDS[field_name]
        first = self.rng.randint(low, high - 1)
        step = self.rng.randint(1, max(2, (high - first) // 2))
        quartz, python, croner = self.spell(field_name, [first, high], names_allowed=False)
        e.used.add("x/n")
        e.put(
            field_name,
            f"{quartz[0]}/{step}",
            f"{'-'.join(python)}/{step}",
            f"{'-'.join(croner)}/{step}",
        )

    def star_step(self, e, field_name):
        low, high = BOUNDS[field_name]
        text = f"*/{self.rng.randint(2, max(3, (high - low) // 2))}"
        e.used.add("*/n")
        e.put(field_name, text, text)

    def anything(self, e, field_name):
        kind = self.rng.random()
        if kind < 0.15:
            e.put(field_name, "*", "*")
        elif kind < 0.45:
            self.value(e, field_name, self.rng.randint(*BOUNDS[field_name]))
        else:
            terms = [self.list, self.range, self.range_step, self.open_step, self.star_step]
            if field_name == "hour":
                terms.append(self.wrapping)
            self.rng.choice(terms)(e, field_name)

    # The fields.

    def clock(self, e):
        """Second, minute and hour; mostly fixed so that five answers span many days."""
        busy = None
        if self.rng.random() < 0.3:
            busy = self.rng.choice(["second", "minute", "hour", "all"])
        for name in ("second", "minute", "hour"):
            if busy in (name, "all"):
                self.anything(e, name)
            elif name == "second" and self.rng.random() < 0.6:
                e.put(name, "0", "0")
            else:
                self.value(e, name, self.rng.randint(*BOUNDS[name]))

    def month(self, e):
        kind = self.rng.random()
        if kind < 0.6:
            e.put("month", "*", "*")
        elif kind < 0.7:
            self.value(e, "month", self.rng.randint(1, 12))
        elif kind < 0.95:
            self.rng.choice([self.list, self.range, self.range_step, self.open_step,
                             self.star_step])(e, "month")
        else:
            self.wrapping(e, "month")

    def days(self, e, kind):
        rng = self.rng
        side, _, term = kind.partition(" ")
        e.put("dow" if side == "dom" else "dom", "?", "?")
        plain = {
            "list": self.list, "range": self.range, "wrap": self.wrapping,
            "a-b/n": self.range_step, "x/n": self.open_step, "*/n": self.star_step,
        }
        if term == "*":
            e.put(side, "*", "*")
        elif term == "value":
            self.value(e, side, rng.randint(*BOUNDS[side]))
        elif term in plain:
            plain[term](e, side)
        elif term == "step":
            rng.choice([self.range_step, self.open_step, self.star_step])(e, side)
        elif kind == "dom L":
            e.put("dom", "L", "L")
        elif kind == "dom L-n":
            e.before_last = rng.choice([rng.randint(1, 9), rng.randint(1, 27)])
            e.put("dom", f"L-{e.before_last}", "L")
        elif kind == "dom nW":
            self.nearest_weekday(e)
        elif kind == "dom LW":
            e.last_weekday = True
            e.put("dom", "LW", "LW")
        elif kind == "dow L":
            e.put("dow", "L", "6", "7")
        else:
            day = rng.randint(0, 6)
            quartz = str(day + 1) if term.startswith("n") else self.name("dow", day)
            if term.endswith("#k"):
                nth = rng.randint(1, 5)
                e.put("dow", f"{quartz}#{nth}", f"{day}#{nth}", f"{day + 1}#{nth}")
            else:
                e.put("dow", f"{quartz}L", f"L{day}", f"{day + 1}#L")

    def nearest_weekday(self, e):
        """nW with the days at both ends of the month drawn more often."""
        rng = self.rng
        day = rng.choice([1, 1, 2, 28, 29, 30, 31, 31, *rng.choices(range(3, 28), k=8)])
        e.put("dom", f"{day}W", f"{day}W")
        if day <= 28:
            return
        months = [m for m, length in MONTH_LENGTH.items() if length >= day]
        if rng.random() < 0.5:
            months = sorted(rng.sample(months, rng.randint(1, len(months))))
        quartz, python, croner = self.spell("month", months)
        e.put("month", *(",".join(texts) for texts in (quartz, python, croner)))

    def year(self, e, start):
        """A year field near the start; sometimes wholly in the past."""
        rng = self.rng
        near = start.year
        kind = rng.random()
        if kind < 0.15:
            text, years = "*", None
        elif kind < 0.3:
            first = max(FIRST_YEAR, near - rng.randint(0, 3))
            last = min(LAST_YEAR, near + rng.randint(1, 30))
            step = rng.randint(2, 5)
            text, years = f"{first}-{last}/{step}", range(first, last + 1, step)
        elif kind < 0.55:
            first, last = max(FIRST_YEAR, near + rng.randint(-2, 2)), near + rng.randint(3, 12)
            text, years = f"{first}-{last}", range(first, last + 1)
        elif kind < 0.75:
            years = [max(FIRST_YEAR, near + rng.randint(-1, 12)) for _ in range(rng.randint(2, 3))]
            text = ",".join(map(str, years))
        elif kind < 0.93:
            years = [min(LAST_YEAR, near + rng.choice([0, 0, 1, 2, rng.randint(1, 60)]))]
            text = str(years[0])
        else:
            years = [max(FIRST_YEAR, near - rng.randint(1, 5))]
            text = str(years[0])
        e.years = None if years is None else set(years)
        e.used.add("year")
        e.put("year", text, text)

    def expression(self, kind, start):
        e = Expression()
        self.clock(e)
        self.days(e, kind)
        if "month" not in e.quartz:
            self.month(e)
        if self.rng.random() < 0.35:
            self.year(e, start)
        return e


def line(fields):
    return " ".join(fields[name] for name in BOUNDS if name in fields)


def without_year(e):
    fields = {name: term for name, term in e.python.items() if name != "year"}
    return replace(e, python=fields, years=None)


def stamp(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def random_start(rng):
    first = datetime(2001, 1, 1, tzinfo=timezone.utc)
    last = datetime(2085, 12, 31, tzinfo=timezone.utc)
    moment = first + timedelta(seconds=rng.randint(0, int((last - first).total_seconds())))
    return moment.replace(second=0) if rng.random() < 0.4 else moment


def by_croniter(e, after):
    shift = timedelta(days=e.before_last)
    source = croniter(
        line(e.python), after + shift, ret_type=datetime,
        second_at_beginning=True, max_years_between_matches=150,
    )
    found = []
    try:
        while len(found) < INSTANTS:
            found.append(source.get_next() - shift)
    except CroniterBadDateError:
        pass
    return found


def by_cronsim(e, after):
    """For LW. The library knows neither "?" nor wrapping ranges nor years: it gets a star
    and the lists made for croner, and the years are picked here."""
    fields = {name: term for name, term in e.croner.items() if name != "year"}
    fields["dow"] = "*"
    found = []
    for moment in CronSim(line(fields), after):
        if moment.year > LAST_YEAR + 50 or len(found) == INSTANTS:
            break
        if e.years is None or moment.year in e.years:
            found.append(moment)
    return found


CRONER_SCRIPT = """
const { Cron } = require("croner");
const found = require("croner/package.json").version;
const wanted = process.argv[1];
if (found !== wanted) throw new Error(`needs croner ${wanted}, found ${found}`);
const cases = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(cases.map(({ pattern, after, offset, count }) => {
  const options = { timezone: "UTC", alternativeWeekdays: true, dayOffset: offset };
  try {
    const runs = new Cron(pattern, options).nextRuns(count, new Date(after));
    return runs.map((run) => run.toISOString().replace(".000Z", "Z"));
  } catch (error) {
    return String(error);
  }
})));
"""


def by_croner(expressions, starts):
    """All cases in one run of Node.js; a text instead of a list is an error message."""
    cases = [
        {"pattern": line(e.croner), "after": stamp(after), "offset": -e.before_last,
         "count": INSTANTS}
        for e, after in zip(expressions, starts)
    ]
    run = subprocess.run(
        ["node", "-e", CRONER_SCRIPT, CRONER_VERSION],
        input=json.dumps(cases), capture_output=True, text=True,
    )
    if run.returncode != 0:
        sys.exit(f"croner did not run (see the docstring):\n{run.stderr}")
    return json.loads(run.stdout)


def candidates(rng, wrap, number):
    """Random expressions with their start and the answer of the Python library."""
    maker = Maker(rng, wrap)
    for turn in range(number):
        kind = DAY_KINDS[turn % len(DAY_KINDS)]
        while True:
            after = random_start(rng)
            e = maker.expression(kind, after)
            evaluate = by_cronsim if e.last_weekday else by_croniter
            found = evaluate(e, after)
            if found and rng.random() < 0.15:
                e.used.add("start on a match")
                after = found[0]
                found = evaluate(e, after)
            if found and found[-1].year > LAST_YEAR:
                continue
            if len(found) < INSTANTS and e.years is None:
                continue  # The library gave up although the year is open.
            if not found and not evaluate(without_year(e), after):
                continue  # A date that never exists, such as 31 April.
            break
        yield kind, e, after, [stamp(moment) for moment in found]


def main():
    parser = argparse.ArgumentParser(description="Make test vectors for Quartz cron.")
    parser.add_argument("--seed", type=int, default=20240115)
    parser.add_argument("--count", type=int, default=483)
    parser.add_argument("--no-wrap", action="store_true")
    args = parser.parse_args()
    for name, wanted in PYTHON_VERSIONS.items():
        if version(name) != wanted:
            sys.exit(f"needs {name} {wanted}, found {version(name)}")

    rng = random.Random(args.seed)
    made = list(candidates(rng, not args.no_wrap, args.count))
    second_opinion = by_croner([m[1] for m in made], [m[2] for m in made])

    lines, counts = [], Counter()
    for (kind, e, after, found), other in zip(made, second_opinion):
        expr = line(e.quartz)
        if found != other:
            print(f"libraries differ, left out: {expr!r} after {stamp(after)}\n"
                  f"  python {found}\n  croner {other}", file=sys.stderr)
            counts["left out"] += 1
            continue
        case = {"expr": expr, "after": stamp(after), "expect": found}
        if len(found) < INSTANTS:
            case["end"] = True
            counts["end"] += 1
        counts.update([kind, f"{len(e.quartz)} fields", *sorted(e.used)])
        lines.append(json.dumps(case))

    print("[\n" + ",\n".join(lines) + "\n]")
    print(f"{len(lines):5}  cases", file=sys.stderr)
    for name, number in sorted(counts.items()):
        print(f"{number:5}  {name}", file=sys.stderr)
    missing = [kind for kind in DAY_KINDS if counts[kind] < AT_LEAST]
    if missing:
        print(f"fewer than {AT_LEAST}: {', '.join(missing)}", file=sys.stderr)


if __name__ == "__main__":
    main()
