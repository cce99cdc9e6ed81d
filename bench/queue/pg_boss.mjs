// pg-boss with the settings that its manual gives for speed.

const QUEUE = 'noop'
// Its default. More connections made it slower on two cores, fewer too.
const CONNECTIONS_MAX = 10
// How long a worker that found nothing rests. Its own `work` rests for half a second at least.
const REST_MS = 2

export async function open({ load, url, rest }) {
  const { PgBoss } = await load('pg-boss')
  const boss = new PgBoss({
    connectionString: url,
    max: CONNECTIONS_MAX,
    useListenNotify: true,
    // No cron and no upkeep, which would take time from whoever is measured just then.
    schedule: false,
    supervise: false,
  })
  boss.on('error', error => console.error(`pg-boss: ${error.message}`))
  boss.on('warning', warning => console.error(`pg-boss: ${warning.message}`))
  await boss.start()
  // A table of its own, as the manual advises for a large queue.
  await boss.createQueue(QUEUE, { partition: true })
  const sql = text => boss.getDb().executeSql(text)

  return {
    enqueue: runs => boss.insert(QUEUE, runs.map(data => ({ data }))),

    // Takes and completes batches as fast as it can. `fetch` and `complete` are what `work` calls too, but `work` rests
    // for its polling interval after every batch that is not full, and after every single one.
    async work({ batch, workers }, handle) {
      await boss.updateQueue(QUEUE, { notify: false })
      let stopped = false
      let failed
      let underWay = 0
      const loop = async () => {
        while (!stopped) {
          const taken = await boss.fetch(QUEUE, { batchSize: batch })
          if (taken.length === 0) {
            await rest(REST_MS)
            continue
          }
          underWay += 1
          for (const { data } of taken) handle(data)
          await boss.complete(QUEUE, taken.map(({ id }) => id))
          underWay -= 1
        }
      }
      const loops = Array.from({ length: workers }, () => loop().catch(error => { failed = error }))
      return {
        async isSettled() {
          if (failed) throw failed
          return underWay === 0
        },
        async stop() {
          stopped = true
          await Promise.all(loops)
        },
      }
    },

    // Is told of new ones. Every insert wakes every worker, so few are better than many.
    async workAtOnce(_rate, handle) {
      await boss.updateQueue(QUEUE, { notify: true })
      const options = {
        batchSize: 500,
        localConcurrency: 4,
        burstWhenBatchFull: true,
        pollingIntervalSeconds: 0.5,
        notifyPollingIntervalSeconds: 0.5,
      }
      const id = await boss.work(QUEUE, options, async taken => {
        for (const { data } of taken) handle(data)
      })
      return { stop: () => boss.offWork(QUEUE, { id, wait: true }) }
    },

    // Without statistics the planner makes each fetch slower than the last: autovacuum would see to that in time.
    analyze: () => sql('VACUUM (ANALYZE) pgboss.job'),

    forget: () => sql("DELETE FROM pgboss.job WHERE state < 'completed'"),
  }
}
