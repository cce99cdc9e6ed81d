"""Every schedule verb of the temporal command line against a server: python cli.py <address> <temporal>."""

import json
import subprocess
import sys

ADDRESS, PROGRAM = sys.argv[1:3]


def ask(*words, code=0):
    command = [PROGRAM, *words, "--address", ADDRESS, "--output", "json", "--disable-config-file"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


def answer(*words):
    return json.loads(ask(*words).stdout)


def refused(*words):
    return ask(*words, code=1).stderr


def describe(name):
    return answer("schedule", "describe", "--schedule-id", name)


create = [
    "schedule", "create", "--task-queue", "cli-reports", "--type", "Report", "--workflow-id", "cli-report",
    "--input", '{"day":1}',
]

# The server and its surroundings.
ask("operator", "cluster", "health")
assert answer("operator", "cluster", "system")["serverVersion"].startswith("1.")
assert answer("operator", "cluster", "describe")["clusterName"] == "active"
assert answer("operator", "namespace", "describe", "--namespace", "default")["namespaceInfo"]["name"] == "default"
ask("operator", "namespace", "create", "--namespace", "cli-space")
names = [one["namespaceInfo"]["name"] for one in answer("operator", "namespace", "list")]
assert {"default", "cli-space"} <= set(names), names
ask("operator", "search-attribute", "create", "--name", "Place", "--type", "Keyword")
assert "Place" in ask("operator", "search-attribute", "list").stdout

# Create, in every form of a time.
ask(*create, "--schedule-id", "cli-cron", "--cron", "30 9 * * MON-FRI", "--time-zone", "Europe/Berlin",
    "--schedule-memo", 'owner="ann"', "--schedule-search-attribute", 'Place="berlin"', "--notes", "at first",
    "--overlap-policy", "BufferAll", "--catchup-window", "5m", "--remaining-actions", "7")
found = describe("cli-cron")
spec = found["schedule"]["spec"]
assert spec["timezoneName"] == "Europe/Berlin" and "cronString" not in spec, spec
calendar = spec["structuredCalendar"][0]
assert calendar["hour"][0]["start"] == 9 and calendar["minute"][0]["start"] == 30, calendar
assert calendar["dayOfWeek"][0] == {"start": 1, "end": 5, "step": 1}, calendar
assert found["schedule"]["policies"]["overlapPolicy"] == "SCHEDULE_OVERLAP_POLICY_BUFFER_ALL"
assert found["schedule"]["policies"]["catchupWindow"] == "300s"
assert found["schedule"]["state"] == {"notes": "at first", "limitedActions": True, "remainingActions": "7"}, found
assert "Place" in found["searchAttributes"]["indexedFields"] and "owner" in found["memo"]["fields"]
start = found["schedule"]["action"]["startWorkflow"]
assert (start["workflowType"]["name"], start["taskQueue"]["name"]) == ("Report", "cli-reports"), start
assert len(found["info"]["futureActionTimes"]) == 7
ask(*create, "--schedule-id", "cli-interval", "--interval", "5h/45m", "--jitter", "10s")
assert describe("cli-interval")["schedule"]["spec"]["interval"] == [{"interval": "18000s", "phase": "2700s"}]
ask(*create, "--schedule-id", "cli-calendar", "--calendar", '{"dayOfWeek":"Fri","hour":"3","minute":"30"}', "--paused")
calendar = describe("cli-calendar")["schedule"]["spec"]["structuredCalendar"][0]
assert calendar["dayOfWeek"][0]["start"] == 5 and calendar["hour"][0]["start"] == 3, calendar
assert "already" in refused(*create, "--schedule-id", "cli-cron", "--cron", "@daily").lower()
assert "Invalid schedule spec" in refused(*create, "--schedule-id", "cli-bad", "--cron", "often")

# Update replaces the whole; toggle, trigger and backfill change a part.
ask("schedule", "update", "--schedule-id", "cli-cron", "--task-queue", "cli-reports", "--type", "Other",
    "--workflow-id", "cli-report", "--cron", "0 0 1 1 *", "--overlap-policy", "AllowAll")
found = describe("cli-cron")
assert found["schedule"]["action"]["startWorkflow"]["workflowType"]["name"] == "Other"
assert found["schedule"]["spec"]["structuredCalendar"][0]["month"][0]["start"] == 1
ask("schedule", "toggle", "--schedule-id", "cli-cron", "--pause", "--reason", "wait")
state = describe("cli-cron")["schedule"]["state"]
assert state["paused"] and state["notes"] == "wait", state
ask("schedule", "toggle", "--schedule-id", "cli-cron", "--unpause", "--reason", "go on")
state = describe("cli-cron")["schedule"]["state"]
assert not state.get("paused") and state["notes"] == "go on", state
ask("schedule", "trigger", "--schedule-id", "cli-cron", "--overlap-policy", "AllowAll")
assert describe("cli-cron")["info"]["actionCount"] == "1"
ask("schedule", "backfill", "--schedule-id", "cli-cron", "--start-time", "2018-01-01T00:00:00Z",
    "--end-time", "2020-01-01T00:00:00Z", "--overlap-policy", "AllowAll")
info = describe("cli-cron")["info"]
assert info["actionCount"] == "4" and len(info["runningWorkflows"]) == 4, info

# List, and delete.
listed = [one["scheduleId"] for one in answer("schedule", "list")]
assert {"cli-cron", "cli-interval", "cli-calendar"} <= set(listed), listed
listed = answer("schedule", "list", "--query", "TemporalSchedulePaused = true AND ScheduleId STARTS_WITH 'cli-'")
assert [one["scheduleId"] for one in listed] == ["cli-calendar"], listed
assert [one["scheduleId"] for one in answer("schedule", "list", "--query", "Place = 'berlin'")] == ["cli-cron"]
for name in ["cli-cron", "cli-interval", "cli-calendar"]:
    ask("schedule", "delete", "--schedule-id", name)
    assert "not found" in refused("schedule", "describe", "--schedule-id", name).lower()
ask("operator", "search-attribute", "remove", "--name", "Place", "--yes")
print("the temporal command line: every schedule verb")
