// The engine of engine.js with one rule broken, named on the command line.
"use strict";
const { Scheduler, serve } = require("./engine.js");

const wrong = {
  "budget-off-by-one": (engine) => {
    engine.budget += 1;
  },
  "waits-for-room": (engine) => {
    const serve = engine.serve.bind(engine);
    engine.serve = (job, step) => {
      const count = Math.min(job.known - job.computed, step.cap, step.left);
      if (engine.blocksFor(job.computed + count) - job.held <= engine.free) serve(job, step);
    };
  },
  "leaks-on-finish": (engine) => {
    engine.complete = (emitted, finished) => {
      for (const job of engine.running) if (emitted.includes(job.id)) job.known += 1;
      engine.running = engine.running.filter((job) => !finished.includes(job.id));
    };
  },
  "head-skipped": (engine) => {
    engine.admit = (step) => {
      for (const job of [...engine.waiting]) {
        if (step.left <= 0 || engine.running.length >= engine.seats) return;
        if (engine.blocksFor(job.known) > engine.free) continue;
        const count = Math.min(job.known, step.cap, step.left);
        engine.take(job, count);
        step.entries.push([job.id, 0, count]);
        step.left -= count;
        engine.waiting.splice(engine.waiting.indexOf(job), 1);
        engine.running.push(job);
      }
    };
  },
};

serve((limits) => {
  const engine = new Scheduler(limits);
  wrong[process.argv[2]](engine);
  return engine;
});
