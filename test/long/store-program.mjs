// A program that owns a store: FILE OPTIONS-AS-JSON. Each line it reads is a list of calls that are made together; each
// answer is a line: what they came to. It ends when its input does. Long text is named by its length, both ways.
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { openSqliteState } from '../../dist/backends/sqlite/index.js';
import { findError, nodeEnvironment } from '../../dist/index.js';

const [file, options = '{}'] = process.argv.slice(2);

/** Said at once, whatever happens next: process.stdout would queue what a slow reader has no room for. */
function tell(answer) {
  const brief = (_key, value) => (typeof value === 'string' && value.length > 1000 ? { long: value.length } : value);
  const bytes = Buffer.from(`${JSON.stringify(answer, brief)}\n`);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

async function outcome(work) {
  try {
    return { value: await work() };
  } catch (error) {
    const { code, reason, message, holder } = findError(error) ?? { code: 'foreign', message: String(error?.stack ?? error) };
    return { code, reason, message, holder };
  }
}

/** `admin.compact` is a method of a part, `reopen` one of this program. */
function call(method, args) {
  if (method === 'reopen') return reopen();
  const parts = method.split('.');
  const name = parts.pop();
  const owner = parts.reduce((part, key) => part[key], state);
  return owner[name](...args);
}

const atLength = (_key, value) => (Number.isInteger(value?.long) ? 'x'.repeat(value.long) : value);

let state;
async function open() {
  state = await openSqliteState({ file, environment: nodeEnvironment(), ...JSON.parse(options) });
  return { storeId: state.storeId, revision: state.revision };
}

async function reopen() {
  await state[Symbol.asyncDispose]();
  return open();
}

const opened = await outcome(open);
tell([opened]);
if (state !== undefined) {
  for await (const line of createInterface({ input: process.stdin })) {
    tell(await Promise.all(JSON.parse(line, atLength).map(([method, ...args]) => outcome(() => call(method, args)))));
  }
  tell([await outcome(() => state[Symbol.asyncDispose]())]);
}
