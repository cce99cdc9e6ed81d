// graphile-worker with the settings that its manual gives for speed.

// Its default. As many as there are workers, which it recommends, made it slower on two cores.
const CONNECTIONS_MAX = 10
// Above this it does not keep up without its local queue; below, it is quicker without.
const LOCAL_QUEUE_FROM_RATE = 1_000

const ADD_MANY = `
  SELECT 1 FROM graphile_worker.add_jobs(
    array(SELECT json_populate_recordset(null::graphile_worker.job_spec, $1::json)))`

export async function open({ load, url }) {
  // Else it formats one line of log for each.
  process.env.NO_LOG_SUCCESS = '1'
  const { Logger, makeWorkerUtils, run } = await load('graphile-worker')
  const logger = new Logger(() => (level, message) => {
    if (level === 'error') console.error(`graphile-worker: ${message}`)
  })
  const utils = await makeWorkerUtils({ connectionString: url, maxPoolSize: CONNECTIONS_MAX, logger })
  await utils.migrate()
  const sql = (text, values) => utils.withPgClient(client => client.query(text, values))

  async function start(worker, handle) {
    const runner = await run({
      taskList: { noop: handle },
      noHandleSignals: true,
      preset: { worker: { connectionString: url, maxPoolSize: CONNECTIONS_MAX, logger, ...worker } },
    })
    return {
      // It completes behind the handler's back: only the table says when.
      async isSettled() {
        const { rows } = await sql('SELECT EXISTS (SELECT FROM graphile_worker._private_jobs) AS some')
        return !rows[0].some
      },
      stop: () => runner.stop(),
    }
  }

  const withLocalQueue = (size, workers) => ({
    concurrentJobs: workers,
    localQueue: { size },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  })

  return {
    enqueue(runs) {
      if (runs.length === 1) return utils.addJob('noop', runs[0])
      // In SQL: its own function also fetches what it added.
      return sql(ADD_MANY, [JSON.stringify(runs.map(payload => ({ identifier: 'noop', payload })))])
    },

    // A local queue smaller than the number of workers would starve some of them.
    work: ({ batch, workers }, handle) => start(withLocalQueue(Math.max(batch, workers), workers), handle),

    workAtOnce: (rate, handle) =>
      start(rate < LOCAL_QUEUE_FROM_RATE ? { concurrentJobs: 10 } : withLocalQueue(500, 16), handle),

    analyze: () => sql('VACUUM (ANALYZE) graphile_worker._private_jobs'),

    forget: () => sql('DELETE FROM graphile_worker._private_jobs'),
  }
}
