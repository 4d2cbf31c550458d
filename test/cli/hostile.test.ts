import { appendFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nodeEnvironment } from '../../src/environment/index.ts';
import { makeResource, visibleText } from '../../src/resource/index.ts';
import { wrapCore } from '../../src/state/index.ts';
import { openStore } from '../../src/stores/index.ts';
import { smallStack, Workplace } from './harness.ts';
import { runInProcess } from './in-process.ts';

// Names, labels, messages and output that would colour, move, retitle, hide or reverse what a person reads.

const id = 'pay\u202egpj.exe\u200b';
const text = '\u001b[31mred\u001b[0m\u001b]0;title\u0007\nFAKE   LINE\r\u009b2J\u2066x\u00ad';
/** What must never arrive: everything that a terminal obeys or nobody sees, but for newlines and tabs. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const dangerous = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;

let place: Workplace;

beforeAll(async () => {
  place = await Workplace.make();
  await place.serveModule(`
export const definitions = [
  defineResource({ type: 'Things.example.dev', spec, status: { type: 'ThingStatuses.example.dev' }, ready: ({ spec }) => ({ status: 'InProgress', reason: spec.text, message: spec.text }),
    printColumns: [{ name: 'TEXT\\u001b[31m', jsonPath: '{.spec.text}' }, { name: 'SAYS', jsonPath: '{.status.conditions[0].message}' }] }),
  defineResource({ type: 'ThingStatuses.example.dev', spec }),
];
`);
  const environment = nodeEnvironment();
  await using store = await openStore(`unix:${place.path('.steadystate/api.sock')}`, { environment, directory: place.folder });
  const state = wrapCore(store.state, { environment });
  const at = '2026-01-01T00:00:00Z';
  await state.create(
    makeResource({
      metadata: {
        namespace: 'default',
        type: 'Things.example.dev',
        id,
        labels: { app: text, 'key\u202e': 'x' },
        annotations: { note: text },
        finalizers: ['hold\u202e'],
      },
      spec: { text, [text]: [text] },
    }),
  );
  await state.create(
    makeResource({
      metadata: { namespace: 'default', type: 'ThingStatuses.example.dev', id },
      spec: {
        conditions: [{ type: text, status: 'False', reason: text, message: text, lastTransitionTime: at }],
        children: [
          {
            kind: text,
            group: 'example.dev',
            namespace: 'default',
            name: text,
            ready: false,
            reason: text,
            message: text,
            lastTransitionTime: at,
          },
        ],
        lastOutput: text,
      },
    }),
    { owner: 'x\u202e' },
  );
  await state.create(
    makeResource({
      metadata: { namespace: 'default', type: 'Events.steadystate.dev', id: 'event\u202e' },
      spec: {
        type: text,
        reason: text,
        note: text,
        count: text,
        regarding: { type: 'Things.example.dev', namespace: 'default', id },
        related: { type: text, namespace: 'default', id: text },
        firstSeen: text,
        lastSeen: text,
      },
    }),
  );
});

afterAll(() => place[Symbol.asyncDispose]());

const file = JSON.stringify({ metadata: { type: 'Things.example.dev', id, labels: { app: text } }, spec: { text: `other ${text}` } });

const looks: readonly (readonly string[])[] = [
  ['get', 'things'],
  ['get', 'things', '-A'],
  ['get', 'thing', id],
  ['get', 'things', '-o', 'wide'],
  ['get', 'things', '-o', 'yaml'],
  ['get', 'things', '-o', 'json'],
  ['describe', 'thing', id],
  ['why', 'thing', id],
  ['why', 'thing', id, '-o', 'yaml'],
  ['why', 'thing', id, '-o', 'json'],
  ['events'],
  ['events', '-o', 'wide'],
  ['events', '-o', 'yaml'],
  ['events', '-o', 'json'],
  ['events', '--for', `thing/${id}`],
  ['events', '--for', `thing/none${id}`],
  ['graph', '--resources'],
  ['graph', '--resources', '-o', 'dot'],
  ['graph', '--resources', '-o', 'json'],
  ['diff', '-f', '-'],
  ['plan', '-f', '-'],
  ['plan', '-f', '-', '-o', 'yaml'],
  ['types'],
  ['types', '-o', 'json'],
  ['namespaces'],
  ['apply', '-f', '-'],
  ['label', 'thing', id, `a=${text}`],
  ['label', 'thing', id, `app=${text}!`],
  ['annotate', 'thing', id, 'a=b', '--overwrite'],
  ['wait', 'thing', id, '--for=ready', '--timeout', '10ms'],
  ['wait', 'thing', id, '--for=condition=Ready', '--timeout', '10ms'],
  ['wait', 'thing', id, `--for=jsonpath={.spec.text}=${text}`, '--timeout', '10ms'],
  ['wait', 'thing', id, '--for=jsonpath={.spec.text}', '--timeout', '5s'],
  ['get', 'thing', `none${id}`],
  ['get', text],
  ['get', 'things', '-l', text],
  ['get', 'things', '-o', text],
  ['get', 'things', '-o', `jsonpath={${text}`],
  ['events', '--for', text],
  ['logs', id, id],
  ['restart', id, id],
  ['delete', 'thing', id, '--wait', '--timeout', '10ms'],
  ['release-finalizer', 'thing', id, `none${id}`],
  ['release-finalizer', 'thing', id, 'hold\u202e'],
  ['delete', 'thing', id],
];

test.each(looks.map((words) => [visibleText(words.join(' ')), words] as const))(
  '%s: nothing arrives that a terminal obeys',
  async (_name, words) => {
    const { stdout, stderr, open } = await runInProcess(place.folder, words, { input: file });
    expect(stdout + stderr).not.toBe('');
    expect({ words, stdout: dangerous.exec(stdout), stderr: dangerous.exec(stderr), open }).toEqual({
      words,
      stdout: null,
      stderr: null,
      open: {},
    });
    expect(stdout + stderr).not.toMatch(/^FAKE/m);
  },
);

describe('values as they are', () => {
  const thing = (other: string): string =>
    JSON.stringify({ metadata: { type: 'Things.example.dev', id: other, labels: { app: text } }, spec: { text } });

  test('yaml and json hold the very same values: they can be applied again', async () => {
    expect((await runInProcess(place.folder, ['apply', '-f', '-'], { input: thing(`same${id}`) })).code).toBe(0);
    for (const format of ['yaml', 'json']) {
      const { stdout } = await runInProcess(place.folder, ['get', 'thing', `same${id}`, '-o', format]);
      expect(await runInProcess(place.folder, ['apply', '-f', '-'], { input: stdout })).toMatchObject({
        code: 0,
        stdout: 'things/samepay\\u202egpj.exe\\u200b unchanged\n',
      });
    }
    const { stdout } = await runInProcess(place.folder, ['get', 'thing', `same${id}`, '-o', 'json']);
    expect(JSON.parse(stdout)).toMatchObject({ metadata: { labels: { app: text } }, spec: { text } });
  });

  test('jsonpath and name: exact for a program, shown for a person', async () => {
    const look = (args: readonly string[], columns?: number) =>
      runInProcess(place.folder, ['get', 'thing', `same${id}`, ...args], columns === undefined ? {} : { columns });
    expect((await look(['-o', 'jsonpath={.spec.text}'])).stdout).toBe(text);
    expect((await look(['-o', 'name'])).stdout).toBe(`things/same${id}\n`);
    expect((await look(['-o', 'name'], 80)).stdout).toBe('things/samepay\\u202egpj.exe\\u200b\n');
    expect((await look(['-o', 'jsonpath={.spec.text}'], 80)).stdout).toBe(
      '\\x1b[31mred\\x1b[0m\\x1b]0;title\\x07\nFAKE   LINE\\r\\x9b2J\\u2066x\\xad',
    );
  });

  test('a table and a watch, exactly', async () => {
    const aborter = new AbortController();
    let shown = '';
    const watching = runInProcess(place.folder, ['get', 'thing', `same${id}`, '-w'], {
      columns: 200,
      signal: aborter.signal,
      onOutput: (piece) => (shown += piece),
    });
    await expect.poll(() => shown, { timeout: 15_000 }).toContain('AGE');
    await runInProcess(place.folder, ['annotate', 'thing', `same${id}`, 'seen=yes']);
    await expect.poll(() => shown.trimEnd().split('\n').length, { timeout: 15_000 }).toBe(3);
    aborter.abort();
    expect((await watching).code).toBe(0);
    const [headings, first, second] = shown.replace(/ \d+s$/gm, ' 0s').split('\n');
    const cell = '\\x1b[31mred\\x1b[0m\\x1b]0;title\\x07\\nFAKE   LINE\\r\\x9b2J\\u2066x\\xad';
    expect(headings).toBe(`ID                           TEXT\\x1b[31M${' '.repeat(cell.length - 9)}SAYS   AGE`);
    expect(first).toBe(`samepay\\u202egpj.exe\\u200b   ${cell}          0s`);
    expect(second).toBe(first);
  });
});

test('output of services: a terminal gets its colours and nothing else, a pipe gets what was written', async () => {
  await using shop = await Workplace.make();
  await shop.write('small.yaml', smallStack);
  await shop.start(['up', 'small.yaml']).shows('ready: small');
  await appendFile(shop.path('data/.logs/small/web.log'), `\u001b[1;31mbad\u001b[0m \u001b[2J\ttab\u202e\r\n`);
  const logs = async (options: { readonly columns?: number; readonly color?: boolean }): Promise<string> =>
    (await runInProcess(shop.folder, ['logs', 'small', 'web', '--tail', '1'], options)).stdout;
  expect(await logs({})).toBe('\u001b[1;31mbad\u001b[0m \u001b[2J\ttab\u202e\r\n');
  expect(await logs({ columns: 80, color: true })).toBe('\u001b[1;31mbad\u001b[0m \\x1b[2J\ttab\\u202e\u001b[0m\n');
  expect(await logs({ columns: 80 })).toBe('bad \\x1b[2J\ttab\\u202e\n');
});
