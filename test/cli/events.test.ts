import { afterAll, beforeAll, expect, test } from 'vitest';
import { smallStack, Workplace } from './harness.ts';

let place: Workplace;

/** An event as any program may record it. */
const event = (id: string, lastSeen: string, spec: object, namespace = 'default'): string =>
  JSON.stringify({
    metadata: { namespace, type: 'Events.steadystate.dev', id },
    spec: {
      type: 'Normal',
      reason: 'Ready',
      note: id,
      regarding: { namespace, type: 'Stacks.host.steadystate.dev', id: 'other' },
      count: 1,
      firstSeen: '2020-01-01T00:00:00Z',
      lastSeen,
      ...spec,
    },
  });

beforeAll(async () => {
  place = await Workplace.make();
  await place.write('small.yaml', smallStack);
  await place.start(['up', 'small.yaml']).shows('ready: small');
  const child = { related: { namespace: 'default', type: 'Processes.host.steadystate.dev', id: 'other/api' } };
  const events = [
    event('second', '2020-01-01T00:00:02Z', { type: 'Warning', reason: 'NotReady', count: 3, ...child }),
    event('first', '2020-01-01T00:00:01Z', {}),
    event('far', '2020-01-01T00:00:03Z', {}, 'elsewhere'),
    event('strange', '2020-01-01T00:00:00Z', { note: 'a\u001b[31mred\nnext\u202e', count: undefined }),
  ];
  expect((await place.run(['apply', '-f', '-'], { input: `[${events}]`.replace(/^\[(.*)\]$/s, '{"items":[$1]}') })).code).toBe(0);
});

afterAll(() => place[Symbol.asyncDispose]());

test('what the operator did is there, the last seen at the end', async () => {
  const { stdout, stderr, code } = await place.run(['events']);
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
  const lines = stdout.trimEnd().split('\n');
  expect(lines[0]).toMatch(/^LAST SEEN {3}TYPE +REASON +OBJECT +COUNT +MESSAGE$/);
  expect(lines[1]).toMatch(/^\d+d +Normal +Ready +stacks\/other +a\\x1b\[31mred\\nnext\\u202e$/);
  expect(lines[2]).toMatch(/^\d+d +Normal +Ready +stacks\/other +1 +first$/);
  expect(lines[3]).toMatch(/^\d+d +Warning +NotReady +stacks\/other +3 +second$/);
  expect(lines.slice(4).join('\n')).toMatch(/Normal +Created +stacks\/small +1 +created Processes\/small\/web/);
  expect(stdout).not.toContain('far');
});

test('of one resource, whether it is the workload or the child; by type of event', async () => {
  const names = async (...args: readonly string[]): Promise<string> => (await place.run(['events', ...args, '-o', 'name'])).stdout;
  expect(await names('--for', 'stack/other')).toBe('events/strange\nevents/first\nevents/second\n');
  expect(await names('--for', 'process/other/api')).toBe('events/second\n');
  expect(await names('--types', 'Warning')).toBe('events/second\n');
  expect(await names('-n', 'elsewhere', '--for', 'stack/other')).toBe('events/far\n');
  expect(await names('-A')).toMatch(/^events\/strange\nevents\/first\nevents\/second\nevents\/far\n/);
});

test('a description ends with what was recorded of the resource', async () => {
  const { stdout } = await place.run(['describe', 'stack', 'small']);
  expect(stdout).toMatch(
    /\nevents:\n {2}LAST SEEN +TYPE +REASON +COUNT +MESSAGE\n(?: {2}\S+ +Normal +Created +1 +created .*\n)+ {2}\S+ +Normal +Ready /,
  );
  expect((await place.run(['describe', 'process', 'small/web'])).stdout).toMatch(
    /\nevents:\n.*\n {2}\S+ +Normal +Created +1 +created Processes\/small\/web\n$/,
  );
  expect((await place.run(['describe', 'event', 'first'])).stdout).not.toContain('events:');
});

test('every output', async () => {
  const about = ['events', '--for', 'process/other/api'];
  expect(JSON.parse((await place.run([...about, '-o', 'json'])).stdout)).toMatchObject({
    items: [{ metadata: { id: 'second' }, spec: { count: 3, reason: 'NotReady' } }],
  });
  expect((await place.run([...about, '-o', 'yaml'])).stdout).toMatch(/^items:\n[\s\S]*reason: NotReady\n/);
  expect((await place.run([...about, '-o', 'jsonpath={range .items[*]}{.spec.reason}/{.spec.count}{"\\n"}{end}'])).stdout).toBe(
    'NotReady/3\n',
  );
  expect((await place.run([...about, '-o', 'wide'])).stdout).toMatch(
    /^LAST SEEN +TYPE +REASON +OBJECT +CHILD +SOURCE +FIRST SEEN +COUNT +MESSAGE\n\d+d +Warning +NotReady +stacks\/other +processes\/other\/api +<none> +\d+d +3 +second\n$/,
  );
  expect((await place.run(['events', '-A', '--no-headers'])).stdout).toMatch(/^default +\d+d[\s\S]*^elsewhere +\d+d/m);
  expect(await place.run(['events', '--for', 'stack/none'])).toEqual({
    code: 0,
    stdout: '',
    stderr: 'no events about stack/none in default\n',
  });
  expect(JSON.parse((await place.run(['events', '--for', 'stack/none', '-o', 'json'])).stdout)).toEqual({ items: [] });
});

test('-w tells what comes, also in a namespace that comes later', async () => {
  const [table, lines] = [place.start(['events', '-w', '--for', 'stack/fresh']), place.start(['events', '-A', '-w', '-o', 'json'])];
  await table.shows('LAST SEEN');
  await lines.shows('"id":"far"');
  const far = place.start(['get', 'things.example.dev', '-A', '-w']);
  await far.shows('NAMESPACE');
  const regarding = { namespace: 'default', type: 'Stacks.host.steadystate.dev', id: 'fresh' };
  for (const input of [
    event('one', '2030-01-01T00:00:00Z', { regarding, note: 'it came' }),
    event('one', '2030-01-01T00:00:01Z', { regarding, note: 'it came', count: 2 }),
    event('new', '2030-01-01T00:00:00Z', { note: 'a new place' }, 'brand-new'),
    'metadata: { namespace: brand-new, type: things.example.dev, id: thing }\nspec: {}\n',
  ])
    expect((await place.run(['apply', '-f', '-'], { input })).code).toBe(0);
  await table.shows(/0s +Normal +Ready +stacks\/fresh +2 +it came\n/);
  await lines.shows(/"namespace":"brand-new".*"a new place"/);
  await far.shows(/brand-new +thing +running/);
  expect((await place.run(['get', 'things.example.dev', '-A', '-o', 'name'])).stdout).toBe('things.example.dev/thing\n');
  expect(await place.run(['get', 'none.example.dev', '-A'])).toMatchObject({
    code: 0,
    stdout: '',
    stderr: 'no none.example.dev in any namespace\n',
  });
  for (const watch of [table, lines, far]) watch.kill('SIGINT');
  expect((await table.result).stdout).toMatch(/^LAST SEEN.*\n.* 1 +it came\n.* 2 +it came\n$/);
  for (const line of (await lines.result).stdout.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('spec.note');
});

test.each([
  [['--for', 'stack'], /--for: expected TYPE\/ID such as stack\/shop, found stack/],
  [['--for', '/shop'], /--for: expected TYPE\/ID/],
  [['--for', 'stak/shop'], /unknown type stak/],
  [['--for', 'stack/shop', '-A'], /--for and -A cannot be combined/],
  [['--types', 'Bad'], /--types: expected Normal, Warning or both, found Bad/],
  [['-o', 'xml'], /unknown output xml/],
])('events %j is wrong use', async (args, message) => {
  expect(await place.run(['events', ...args])).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
});
