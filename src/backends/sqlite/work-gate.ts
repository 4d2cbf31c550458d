/** How long the end of a program waits for the work that its thread is in, milliseconds. */
const patienceMs = 5_000;

/** What the cells hold. */
const working = 0;
const shut = 1;

/**
 * Between a program and the thread that works for it. A program that ends at once (`process.exit`, an error that nobody caught) would tear
 * the thread out of the library, which answers by an abort: so the gate is shut first, behind the work that goes on.
 */
export class WorkGate {
  readonly cells: Int32Array<SharedArrayBuffer>;

  /** `cells`: of the gate's other side. */
  constructor(cells = new Int32Array(new SharedArrayBuffer(8))) {
    this.cells = cells;
  }

  /** In the thread: one piece of work. Once the gate is shut, none begins any more, and this does not return. */
  pass<Value>(work: () => Value): Value {
    const { cells } = this;
    Atomics.store(cells, working, 1);
    try {
      if (Atomics.load(cells, shut) === 0) return work();
    } finally {
      Atomics.store(cells, working, 0);
      Atomics.notify(cells, working);
    }
    for (;;) Atomics.wait(cells, shut, 1);
  }

  /** In the program: lets no further work begin, and waits for what is under way. */
  shut(): void {
    const { cells } = this;
    Atomics.store(cells, shut, 1);
    Atomics.wait(cells, working, 1, patienceMs);
  }
}

const gates = new Set<WorkGate>();

function shutAll(): void {
  for (const gate of gates) gate.shut();
}

/** Shuts a gate when the program ends before its thread does; call what it answers once the thread has ended. */
export function beforeExit(gate: WorkGate): () => void {
  if (gates.size === 0) process.on('exit', shutAll);
  gates.add(gate);
  return () => {
    gates.delete(gate);
    if (gates.size === 0) process.off('exit', shutAll);
  };
}
