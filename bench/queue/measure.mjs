// Measures one peer: a question is a line of JSON on standard input, the answer a line of JSON on standard output.
//
//   node measure.mjs pg-boss|graphile-worker <folder with node_modules> <URL of PostgreSQL>

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'

const PEERS = { 'pg-boss': './pg_boss.mjs', 'graphile-worker': './graphile_worker.mjs' }
// The packages are not beside this file, so its own imports would not find them.
const [name, folder, url] = process.argv.slice(2)
const { resolve } = createRequire(join(folder, 'measure.mjs'))
const load = async name => import(resolve(name))

const rest = ms => new Promise(done => setTimeout(done, ms))
const times = (count, make) => Array.from({ length: count }, (_, index) => make(index))
const say = answer => process.stdout.write(`${JSON.stringify(answer)}\n`)

// Whoever is not done this long after the last enqueue does not keep up.
const DRAIN_MS = 15_000

async function until(isDone, describe) {
  const deadline = performance.now() + DRAIN_MS
  while (!await isDone()) {
    if (performance.now() > deadline) throw new Error(`${describe()} within ${DRAIN_MS / 1_000} s after the last enqueue`)
    await rest(1)
  }
}

/** Runs from enqueue to completed, as many as fit into the time, by as many producers as there are workers. */
async function throughput(peer, { batch, workers, seconds, runs_min, under_way_max, waiting = 0 }) {
  let sent = waiting
  let handled = 0
  const crew = await peer.work({ batch, workers }, () => { handled += 1 })
  try {
    const begun = performance.now()
    const end = begun + seconds * 1_000
    await Promise.all(times(workers, async () => {
      while (performance.now() < end || (sent < runs_min && performance.now() < end + DRAIN_MS)) {
        // Without a bound we would measure how the peer copes with an ever longer queue.
        if (sent - handled + batch > Math.max(under_way_max, batch)) {
          await rest(1)
          continue
        }
        sent += batch
        await peer.enqueue(times(batch, () => ({})))
      }
    }))
    await until(async () => handled >= sent && await crew.isSettled(), () => `${handled} of ${sent} were handled`)
    return { runs: sent, seconds: (performance.now() - begun) / 1_000 }
  } finally {
    await crew.stop()
  }
}

/** Runs that come at a fixed rate, whether or not the peer is ready: from when one is due to when its handler starts. */
async function latency(peer, { rate, seconds, batch_max, senders_max }) {
  const waits = []
  const crew = await peer.workAtOnce(rate, ({ due }) => { waits.push(performance.now() - due) })
  try {
    await rest(500) // until it listens
    const begun = performance.now()
    const total = Math.round(rate * seconds)
    const dueTime = index => begun + index * 1_000 / rate
    let sent = 0
    let senders = 0
    let failed
    const isDue = () => sent < total && dueTime(sent) <= performance.now()
    while (sent < total && !failed) {
      while (senders < senders_max && isDue()) {
        const runs = []
        while (runs.length < batch_max && isDue()) {
          runs.push({ due: dueTime(sent) })
          sent += 1
        }
        senders += 1
        peer.enqueue(runs).catch(error => { failed = error }).finally(() => { senders -= 1 })
      }
      await rest(1)
    }
    await until(async () => failed || waits.length >= total, () => `${waits.length} of ${total} were handled`)
    if (failed) throw failed
    waits.sort((a, b) => a - b)
    const quantile = share => waits[Math.floor(share * (total - 1))]
    return { runs: total, p50_ms: quantile(0.5), p99_ms: quantile(0.99) }
  } finally {
    await crew.stop()
  }
}

/** Fills the table once, so that the planner knows it, and warms up the code. */
async function warmUp(peer) {
  const waiting = 5_000
  for (let made = 0; made < waiting; made += 500) await peer.enqueue(times(500, () => ({})))
  await peer.analyze()
  await throughput(peer, { batch: 100, workers: 4, seconds: 1, runs_min: 0, under_way_max: 10_000, waiting })
}

async function answer(peer, question) {
  try {
    await peer.analyze()
    if (question.throughput) return await throughput(peer, question.throughput)
    return await latency(peer, question.latency)
  } catch (error) {
    // What is left over would be counted next time.
    await peer.forget()
    return { error: error.message }
  }
}

const { open } = await import(PEERS[name])
const peer = await open({ load, url, rest })
await warmUp(peer)
const { version } = JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8'))
say({ version })
for await (const line of createInterface({ input: process.stdin })) say(await answer(peer, JSON.parse(line)))
process.exit(0)
