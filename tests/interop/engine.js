// A small scheduler in JavaScript that speaks the protocol: vLLM V1's rule, first come first served.
// It is the template of the guide: replace Scheduler by yours, keep the lines below it.
"use strict";

class Scheduler {
  constructor(limits) {
    const unlimited = (value) => (value === null || value === undefined ? Infinity : value);
    this.budget = unlimited(limits.token_budget);
    this.seats = unlimited(limits.max_seqs);
    this.cap = unlimited(limits.chunk_cap);
    this.maxLen = unlimited(limits.max_len);
    this.blockSize = limits.block_size || 1;
    this.total = unlimited(limits.num_blocks);
    this.free = this.total;
    this.running = []; // in the order of admission
    this.waiting = [];
  }

  blocksFor(tokens) {
    return Math.ceil(Math.min(tokens, this.maxLen) / this.blockSize);
  }

  // A reason why a request can never finish, or null. The last output is never written to KV.
  refuse(prompt, output) {
    if (prompt >= this.maxLen) return "the prompt leaves no room for an output";
    const longest = Math.max(Math.min(prompt + output, this.maxLen), prompt + 1);
    return Math.ceil((longest - 1) / this.blockSize) > this.total ? "it does not fit the pool" : null;
  }

  submit(id, prompt, output) {
    if ([...this.running, ...this.waiting].some((job) => job.id === id)) return "this id is live";
    const reason = this.refuse(prompt, output);
    if (reason === null) this.waiting.push({ id, known: prompt, computed: 0, held: 0 });
    return reason;
  }

  take(job, tokens) {
    const missing = Math.max(0, this.blocksFor(tokens) - job.held);
    if (missing > this.free) return false;
    this.free -= missing;
    job.held += missing;
    return true;
  }

  release(job) {
    this.free += job.held;
    job.held = 0;
  }

  plan() {
    const alone = this.running.length + this.waiting.length <= 1;
    const step = { left: this.budget, cap: alone ? Infinity : this.cap, entries: [], preempted: [] };
    for (const job of [...this.running]) {
      if (step.left <= 0) break;
      if (this.running.includes(job)) this.serve(job, step);
    }
    if (step.preempted.length === 0) this.admit(step);
    for (const [id, start, count] of step.entries) this.running.find((job) => job.id === id).computed = start + count;
    return { entries: step.entries, preempted: step.preempted, rejected: [] };
  }

  serve(job, step) {
    const count = Math.min(job.known - job.computed, step.cap, step.left, this.maxLen - 1 - job.computed);
    if (count <= 0) return;
    while (!this.take(job, job.computed + count)) {
      const victim = this.running.pop(); // the last admitted
      this.release(victim);
      victim.computed = 0;
      step.preempted.push(victim.id);
      this.waiting.unshift(victim);
      if (victim === job) return;
    }
    step.entries.push([job.id, job.computed, count]);
    step.left -= count;
  }

  admit(step) {
    while (this.waiting.length > 0 && step.left > 0 && this.running.length < this.seats) {
      const head = this.waiting[0];
      if (this.blocksFor(head.known) > this.free) return; // the head blocks those behind it
      const count = Math.min(head.known, step.cap, step.left);
      this.take(head, count);
      step.entries.push([head.id, 0, count]);
      step.left -= count;
      this.running.push(this.waiting.shift());
    }
  }

  complete(emitted, finished) {
    for (const job of this.running) if (emitted.includes(job.id)) job.known += 1;
    for (const id of finished) this.cancel(id);
  }

  cancel(id) {
    for (const queue of [this.running, this.waiting]) {
      const place = queue.findIndex((job) => job.id === id);
      if (place >= 0) this.release(queue.splice(place, 1)[0]);
    }
  }

  state() {
    const held = Object.fromEntries(this.running.map((job) => [job.id, job.held]));
    const kv = this.total === Infinity ? { held } : { free: this.free, held };
    return { kv, running: this.running.map((job) => job.id), waiting: this.waiting.map((job) => job.id) };
  }
}

// The protocol: one JSON object a line, one answer for each question, with the same seq.

const DIALECT = { name: "vllm-v1" };
const CLAUSES = ["MOD-REQ-1", "MOD-ARR-1"]; // it refuses an id that is live, and listens while a plan is outstanding
let scheduler = null;

const operations = {
  hello: () => ({ engine: { name: "js-fcfs", version: "1" }, dialect: DIALECT, clauses: CLAUSES }),
  reset: ({ limits }) => ((scheduler = new Scheduler(limits)), {}),
  submit: ({ id, prompt, output }) => {
    const reason = scheduler.submit(id, prompt, output);
    return reason === null ? {} : { rejected: reason };
  },
  plan: () => ({ plan: scheduler.plan(), ...scheduler.state() }),
  complete: ({ emitted, finished }) => {
    scheduler.complete(emitted, finished);
    const { free } = scheduler.state().kv;
    return free === undefined ? {} : { kv: { free } };
  },
  cancel: ({ id }) => (scheduler.cancel(id), {}),
  state: () => scheduler.state(),
  bye: () => ({}),
};

module.exports = { Scheduler, serve };

function serve(makeScheduler) {
  if (makeScheduler) operations.reset = ({ limits }) => ((scheduler = makeScheduler(limits)), {});
  require("readline")
    .createInterface({ input: process.stdin })
    .on("line", (line) => {
      const question = JSON.parse(line);
      const operation = operations[question.op];
      const answer = operation ? { ok: true, ...operation(question) } : { ok: false, unsupported: question.op };
      process.stdout.write(JSON.stringify({ seq: question.seq, ...answer }) + "\n");
      if (question.op === "bye") process.exit(0);
    });
}

if (require.main === module) serve();
