import { spawn } from 'node:child_process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Background } from './harness.ts';
import { program, smallStack, Workplace } from './harness.ts';

let place: Workplace;
let serve: Background;

const start = async (): Promise<void> => {
  serve = place.start(['serve']);
  await serve.shows('serving');
};

beforeEach(async () => {
  place = await Workplace.make();
  await start();
  await place.write('small.yaml', smallStack);
  expect((await place.run(['apply', '-f', 'small.yaml'])).code).toBe(0);
});

afterEach(() => place[Symbol.asyncDispose]());

test.each([
  ['get -w', ['get', 'stacks', '-w'], 'small'],
  ['watch of a kind', ['watch', 'stacks'], 'bootstrapped'],
  ['watch of one resource', ['watch', 'stack', 'small'], 'created'],
])('%s goes on when the server was killed and started again', async (_name, args, shown) => {
  const watch = place.start([...args, '-o', args[0] === 'get' ? 'wide' : 'json']);
  await watch.shows(shown);
  serve.kill('SIGKILL');
  await serve.result;
  await start();
  expect((await place.run(['label', 'stack', 'small', 'seen=after-restart'])).code).toBe(0);
  await watch.shows('after-restart');
  watch.kill('SIGINT');
  expect(await watch.result).toMatchObject({ code: 0, stderr: '' });
});

test('a watch goes on after a bookmark: what came meanwhile is told once', async () => {
  const bookmark = async (): Promise<string> => {
    const watch = place.start(['watch', 'stacks', '-o', 'json']);
    await watch.shows(/bootstrapped.*"bookmark":"/);
    watch.kill('SIGINT');
    const { stdout } = await watch.result;
    return /"type":"bootstrapped".*"bookmark":"([^"]+)"/.exec(stdout)?.[1] as string;
  };
  const from = await bookmark();
  await place.run(['label', 'stack', 'small', 'meanwhile=yes']);
  const watch = place.start(['watch', 'stacks', '-o', 'json', '--from', from]);
  await watch.shows('"meanwhile":"yes"');
  watch.kill('SIGINT');
  const { stdout } = await watch.result;
  const events = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string });
  expect(events.filter(({ type }) => type !== 'noop').map(({ type }) => type)).toEqual(['updated']);
  expect((await place.run(['watch', 'stacks', '--from', 'not!base64'])).code).toBe(2);
  expect((await place.run(['watch', 'stacks', '--from', 'AAAA'])).stderr).toMatch(/bookmark/);
});

test('events -w goes on too', async () => {
  const watch = place.start(['events', '-w', '--for', 'stack/small', '-o', 'json']);
  const event = (note: string) =>
    JSON.stringify({
      metadata: { type: 'Events.steadystate.dev', id: note },
      spec: { note, regarding: { type: 'Stacks.host.steadystate.dev', namespace: 'default', id: 'small' } },
    });
  expect((await place.run(['apply', '-f', '-'], { input: event('before') })).code).toBe(0);
  await watch.shows('"note":"before"');
  serve.kill('SIGKILL');
  await serve.result;
  await start();
  expect((await place.run(['apply', '-f', '-'], { input: event('after') })).code).toBe(0);
  await watch.shows('"note":"after"');
  watch.kill('SIGINT');
  const { code, stdout, stderr } = await watch.result;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.match(/"note":"before"/g)).toHaveLength(1);
});

test('a kept table tells the end of a resource', async () => {
  const watch = place.start(['get', 'stacks', '-w']);
  await watch.shows('small');
  expect((await place.run(['delete', 'stack', 'small'])).code).toBe(0);
  await watch.shows(/^small +<gone>$/m);
  watch.kill('SIGINT');
  expect((await watch.result).code).toBe(0);
});

test('-w is of tables', async () => {
  expect(await place.run(['get', 'stacks', '-w', '-o', 'json'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('steadystate watch TYPE -o json'),
  });
});

test.each([[['get', 'stacks', '-w']], [['watch', 'stacks']]])('%s: a reader that goes is a quiet end', async (args) => {
  const child = spawn(process.execPath, [program, ...args], { cwd: place.folder, stdio: 'pipe' });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  child.stdout.destroy();
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await place.run(['label', 'stack', 'small', 'a=b']);
  await place.run(['label', 'stack', 'small', 'c=d']);
  expect(await ended).toBe(0);
  expect(stderr).toBe('');
});
