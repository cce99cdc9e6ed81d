"""Every schedule verb of Temporal's Python SDK against a server: python schedules.py <address>."""

import sys
from datetime import datetime, timedelta, timezone

from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleBackfill,
    ScheduleCalendarSpec,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.common import RetryPolicy, SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

import ending

TEAM = SearchAttributeKey.for_keyword("Team")
SIZE = SearchAttributeKey.for_int("Size")


def action(**more):
    return ScheduleActionStartWorkflow(
        "Report",
        {"day": 1},
        id="python-report",
        task_queue="python-reports",
        execution_timeout=timedelta(hours=1),
        retry_policy=RetryPolicy(maximum_attempts=3),
        memo={"why": "a test"},
        **more,
    )


async def creates_and_describes(client):
    spec = ScheduleSpec(
        calendars=[ScheduleCalendarSpec(hour=[ScheduleRange(9, 17, 2)], comment="work")],
        intervals=[ScheduleIntervalSpec(every=timedelta(days=10), offset=timedelta(days=2))],
        cron_expressions=["CRON_TZ=Europe/Berlin 0 12 * * MON"],
        skip=[ScheduleCalendarSpec(month=[ScheduleRange(12)])],
        jitter=timedelta(seconds=30),
    )
    schedule = Schedule(
        action=action(),
        spec=spec,
        policy=SchedulePolicy(
            overlap=ScheduleOverlapPolicy.BUFFER_ONE,
            catchup_window=timedelta(minutes=5),
            pause_on_failure=True,
        ),
        state=ScheduleState(note="at first", paused=True, limited_actions=True, remaining_actions=30),
    )
    attributes = TypedSearchAttributes([SearchAttributePair(TEAM, "red"), SearchAttributePair(SIZE, 7)])
    handle = await client.create_schedule(
        "python-all", schedule, memo={"owner": "ann"}, search_attributes=attributes
    )
    found = await handle.describe()
    assert found.id == "python-all"
    told = found.schedule.action
    assert (told.workflow, told.id, told.task_queue) == ("Report", "python-report", "python-reports"), told
    assert await client.data_converter.decode(told.args) == [{"day": 1}]
    assert told.retry_policy.maximum_attempts == 3
    assert told.retry_policy.initial_interval == timedelta(seconds=1)
    assert told.retry_policy.maximum_interval == timedelta(seconds=100)
    calendars = found.schedule.spec.calendars
    assert [c.comment for c in calendars] == ["work", None], calendars
    assert list(calendars[0].hour) == [ScheduleRange(9, 17, 2)], calendars[0]
    assert list(calendars[1].day_of_week) == [ScheduleRange(1, 1, 1)], calendars[1]
    assert list(found.schedule.spec.intervals) == spec.intervals
    assert not found.schedule.spec.cron_expressions
    assert list(found.schedule.spec.skip[0].month) == [ScheduleRange(12, 12, 1)]
    assert found.schedule.spec.jitter == timedelta(seconds=30)
    assert found.schedule.spec.time_zone_name == "Europe/Berlin"
    assert found.schedule.policy == schedule.policy
    assert found.schedule.state == schedule.state
    assert await found.memo_value("owner") == "ann"
    assert found.typed_search_attributes[TEAM] == "red" and found.typed_search_attributes[SIZE] == 7
    assert len(found.info.next_action_times) == 10
    assert found.info.created_at <= datetime.now(timezone.utc) and found.info.last_updated_at is None
    try:
        await client.create_schedule("python-all", schedule)
        raise AssertionError("created twice")
    except ScheduleAlreadyRunningError:
        pass
    return handle


async def updates(handle):
    async def change(given: ScheduleUpdateInput) -> ScheduleUpdate:
        schedule = given.description.schedule
        schedule.spec = ScheduleSpec(cron_expressions=["0 0 1 1 *"])
        schedule.policy.overlap = ScheduleOverlapPolicy.ALLOW_ALL
        schedule.state.limited_actions = False
        schedule.state.remaining_actions = 0
        attributes = TypedSearchAttributes([SearchAttributePair(TEAM, "blue")])
        return ScheduleUpdate(schedule=schedule, search_attributes=attributes)

    await handle.update(change)
    found = await handle.describe()
    assert found.schedule.policy.overlap == ScheduleOverlapPolicy.ALLOW_ALL
    assert list(found.schedule.spec.calendars[0].month) == [ScheduleRange(1, 1, 1)]
    assert found.schedule.state.paused and not found.schedule.state.limited_actions
    assert found.schedule.action.workflow == "Report"
    assert found.typed_search_attributes.search_attributes == [SearchAttributePair(TEAM, "blue")]
    assert found.info.last_updated_at >= found.info.created_at


async def patches(handle):
    await handle.unpause(note="go on")
    found = await handle.describe()
    assert (found.schedule.state.paused, found.schedule.state.note) == (False, "go on")
    await handle.pause(note="wait")
    found = await handle.describe()
    assert (found.schedule.state.paused, found.schedule.state.note) == (True, "wait")
    await handle.trigger(overlap=ScheduleOverlapPolicy.ALLOW_ALL)
    found = await handle.describe()
    assert found.info.num_actions == 1 and len(found.info.running_actions) == 1
    assert found.info.running_actions[0].workflow_id.startswith("python-report-20")
    assert len(found.info.recent_actions) == 1
    start = datetime(2018, 1, 1, tzinfo=timezone.utc)
    await handle.backfill(
        ScheduleBackfill(
            start_at=start, end_at=datetime(2020, 1, 1, tzinfo=timezone.utc), overlap=ScheduleOverlapPolicy.ALLOW_ALL
        )
    )
    found = await handle.describe()
    assert found.info.num_actions == 4, found.info
    ids = [one.workflow_id for one in found.info.running_actions]
    assert any(one.startswith("python-report-2018-01-01T00:00:00Z") for one in ids), ids


async def lists(client):
    for number in range(3):
        schedule = Schedule(action=action(), spec=ScheduleSpec(cron_expressions=["@daily"]))
        await client.create_schedule(f"python-list-{number}", schedule)
    ids = [one.id async for one in await client.list_schedules(page_size=2)]
    assert [one for one in ids if one.startswith("python-")] == [
        "python-all", "python-list-0", "python-list-1", "python-list-2",
    ], ids
    for query, expected in [
        ("Team = 'blue'", ["python-all"]),
        ("TemporalSchedulePaused = false AND ScheduleId STARTS_WITH 'python-'",
         ["python-list-0", "python-list-1", "python-list-2"]),
        ("ScheduleId IN ('python-list-1', 'nobody') OR Team IS NOT NULL", ["python-all", "python-list-1"]),
    ]:
        found = [one async for one in await client.list_schedules(query)]
        assert [one.id for one in found] == expected, (query, found)
    entry = found[-1]
    assert entry.schedule.action.workflow == "Report" and len(entry.info.next_action_times) == 5
    try:
        _ = [one async for one in await client.list_schedules("Team = ")]
        raise AssertionError("a bad query was answered")
    except RPCError as error:
        assert error.status == RPCStatusCode.INVALID_ARGUMENT and "invalid query" in error.message, error


async def refuses(client):
    for spec in [ScheduleSpec(cron_expressions=["often"]), ScheduleSpec(time_zone_name="Mars/Olympus")]:
        try:
            await client.create_schedule("python-bad", Schedule(action=action(), spec=spec))
            raise AssertionError("a bad spec was taken")
        except RPCError as error:
            assert error.status == RPCStatusCode.INVALID_ARGUMENT, error
            assert error.message.startswith("Invalid schedule spec: "), error.message
    try:
        await client.get_schedule_handle("python-bad").describe()
        raise AssertionError("found")
    except RPCError as error:
        assert error.status == RPCStatusCode.NOT_FOUND, error


async def deletes(client):
    for name in ["python-all", "python-list-0", "python-list-1", "python-list-2"]:
        handle = client.get_schedule_handle(name)
        await handle.delete()
        for again in [handle.delete, handle.describe, handle.pause, handle.trigger]:
            try:
                await again()
                raise AssertionError("it is still there")
            except RPCError as error:
                assert error.status == RPCStatusCode.NOT_FOUND, error
    assert [one.id async for one in await client.list_schedules("ScheduleId STARTS_WITH 'python-'")] == []


async def main(address):
    client = await Client.connect(address)
    assert await client.service_client.check_health()
    await client.operator_service.add_search_attributes(
        AddSearchAttributesRequest(namespace="default", search_attributes={"Team": 2, "Size": 3})
    )
    handle = await creates_and_describes(client)
    await updates(handle)
    await patches(handle)
    await lists(client)
    await refuses(client)
    await deletes(client)
    other = await Client.connect(address, namespace="nobody")
    try:
        await other.get_schedule_handle("x").describe()
        raise AssertionError("an unknown namespace was found")
    except RPCError as error:
        assert error.status == RPCStatusCode.NOT_FOUND, error
    print("the Python SDK: every schedule verb")


ending.run(main(sys.argv[1]))
