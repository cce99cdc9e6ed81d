"""DBOS with some schedules that start a workflow every second, until standard input is closed."""

import sys
from datetime import datetime

from dbos import DBOS

url, count = sys.argv[1], int(sys.argv[2])
DBOS(config={"name": "bench", "system_database_url": url})


@DBOS.workflow()
def noop(scheduled: datetime, context) -> None:
    return None


DBOS.launch()
for index in range(count):
    DBOS.create_schedule(schedule_name=f"s{index}", workflow_fn=noop, schedule="* * * * * *")
sys.stdin.read()
