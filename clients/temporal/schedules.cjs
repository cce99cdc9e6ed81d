// Every schedule verb of Temporal's TypeScript SDK against a server: NODE_PATH=... node schedules.cjs <address>

const assert = require('node:assert/strict');
const { Connection, Client, ScheduleOverlapPolicy, ScheduleAlreadyRunning, ScheduleNotFoundError } = require('@temporalio/client');

const action = {
  type: 'startWorkflow',
  workflowType: 'Report',
  workflowId: 'ts-report',
  taskQueue: 'ts-reports',
  args: [{ day: 1 }],
  memo: { why: 'a test' },
};

async function all(iterable) {
  const found = [];
  for await (const one of iterable) found.push(one);
  return found;
}

async function main() {
  const connection = await Connection.connect({ address: process.argv[2] });
  const { schedule } = new Client({ connection });

  const handle = await schedule.create({
    scheduleId: 'ts-all',
    action,
    spec: {
      calendars: [{ dayOfWeek: ['MONDAY', { start: 'WEDNESDAY', end: 'FRIDAY' }], hour: 9, comment: 'work' }],
      intervals: [{ every: '2 days', offset: '3h' }],
      timezone: 'Europe/Berlin',
      jitter: '30s',
    },
    policies: { overlap: ScheduleOverlapPolicy.BUFFER_ONE, catchupWindow: '5m', pauseOnFailure: true },
    state: { note: 'at first', paused: true, remainingActions: 9 },
    memo: { owner: 'ann' },
  });
  let found = await handle.describe();
  assert.equal(found.scheduleId, 'ts-all');
  assert.equal(found.action.workflowType, 'Report');
  assert.equal(found.action.workflowId, 'ts-report');
  assert.equal(found.action.taskQueue, 'ts-reports');
  assert.deepEqual(found.action.args, [{ day: 1 }]);
  assert.deepEqual(found.memo, { owner: 'ann' });
  assert.equal(found.spec.calendars[0].comment, 'work');
  assert.deepEqual(found.spec.calendars[0].hour, [{ start: 9, end: 9, step: 1 }]);
  assert.deepEqual(found.spec.intervals, [{ every: 2 * 86400e3, offset: 3 * 3600e3 }]);
  assert.equal(found.spec.timezone, 'Europe/Berlin');
  assert.equal(found.policies.overlap, ScheduleOverlapPolicy.BUFFER_ONE);
  assert.equal(found.policies.catchupWindow, 300e3);
  assert.equal(found.policies.pauseOnFailure, true);
  assert.deepEqual(
    [found.state.note, found.state.paused, found.state.remainingActions], ['at first', true, 9]);
  assert.equal(found.info.nextActionTimes.length, 9);
  assert.ok(found.info.createdAt instanceof Date && found.info.lastUpdatedAt === undefined);
  await assert.rejects(schedule.create({ scheduleId: 'ts-all', action, spec: {} }), ScheduleAlreadyRunning);
  await assert.rejects(
    schedule.create({ scheduleId: 'ts-bad', action, spec: { cronExpressions: ['often'] } }), TypeError);

  await handle.update((before) => ({
    ...before,
    spec: { cronExpressions: ['0 0 1 1 *'] },
    policies: { ...before.policies, overlap: ScheduleOverlapPolicy.ALLOW_ALL },
    state: { paused: false, note: 'go on' },
  }));
  found = await handle.describe();
  assert.deepEqual(found.spec.calendars[0].month, [{ start: 'JANUARY', end: 'JANUARY', step: 1 }]);
  assert.equal(found.policies.overlap, ScheduleOverlapPolicy.ALLOW_ALL);
  assert.deepEqual([found.state.note, found.state.paused], ['go on', false]);
  assert.ok(found.info.lastUpdatedAt >= found.info.createdAt);

  await handle.pause('wait');
  found = await handle.describe();
  assert.deepEqual([found.state.note, found.state.paused], ['wait', true]);
  await handle.unpause('again');
  found = await handle.describe();
  assert.deepEqual([found.state.note, found.state.paused], ['again', false]);
  await handle.trigger(ScheduleOverlapPolicy.ALLOW_ALL);
  found = await handle.describe();
  assert.equal(found.info.numActionsTaken, 1);
  assert.equal(found.info.runningActions.length, 1);
  assert.match(found.info.runningActions[0].workflow.workflowId, /^ts-report-20/);
  await handle.backfill({
    start: new Date('2018-01-01T00:00:00Z'),
    end: new Date('2020-01-01T00:00:00Z'),
    overlap: ScheduleOverlapPolicy.ALLOW_ALL,
  });
  found = await handle.describe();
  assert.equal(found.info.numActionsTaken, 4);

  for (const number of [0, 1, 2]) {
    await schedule.create({ scheduleId: `ts-list-${number}`, action, spec: { cronExpressions: ['@daily'] } });
  }
  const listed = await all(schedule.list({ pageSize: 2, query: "ScheduleId STARTS_WITH 'ts-'" }));
  assert.deepEqual(listed.map((one) => one.scheduleId), ['ts-all', 'ts-list-0', 'ts-list-1', 'ts-list-2']);
  assert.equal(listed[1].action.workflowType, 'Report');
  assert.equal(listed[1].info.nextActionTimes.length, 5);

  for (const { scheduleId } of listed) {
    const one = schedule.getHandle(scheduleId);
    await one.delete();
    await assert.rejects(one.describe(), ScheduleNotFoundError);
    await assert.rejects(one.delete(), ScheduleNotFoundError);
  }
  await connection.close();
  console.log('the TypeScript SDK: every schedule verb');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
