import { afterEach, beforeEach, expect, test } from 'vitest';
import { memoryState } from '../../backends/memory/index.ts';
import type { CoreState } from '../../state/index.ts';
import { wrapCore } from '../../state/index.ts';
import type { ManualEnvironment } from '../../testing/index.ts';
import { manualEnvironment } from '../../testing/index.ts';
import type { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { waitDestroyed } from './wait.ts';
import { waitOn } from './wait-ready.ts';

const pointer = { namespace: 'default', type: 'Apples.example.dev', id: 'a' };

let environment: ManualEnvironment;
let memory: CoreState & AsyncDisposable;
let session: Session;
let context: CommandContext;

beforeEach(async () => {
  environment = manualEnvironment();
  memory = memoryState({ environment });
  session = { state: wrapCore(memory, { environment }) } as Session;
  const io = { signal: new AbortController().signal, writeError: () => {}, errorIsTerminal: false };
  context = { environment, io, options: {} } as unknown as CommandContext;
  await memory.create({ metadata: pointer, spec: {} });
});

afterEach(async () => {
  await memory[Symbol.asyncDispose]();
  expect(environment.open.counts()).toEqual({});
});

test.each([
  ['for its end', () => waitDestroyed(context, session, pointer, 60_000)],
  ['for something else', () => waitOn(context, session, pointer, async () => ({ done: false, reason: 'not yet' }), 60_000)],
])('a wait %s fails when the store is closed: nothing is known of what was waited for', async (_what, wait) => {
  const waited = wait().then(
    () => 'done',
    (error: unknown) => error,
  );
  await environment.settle();
  await memory[Symbol.asyncDispose]();
  await environment.settle();
  expect(await Promise.race([waited, environment.settle().then(() => 'waiting still')])).toMatchObject({
    exitCode: exitCodes.failed,
    message: expect.stringContaining('the store was closed'),
  });
});
