import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { StackExtra, StackInput } from '../../src/host/index.ts';
import {
  baseDirectoryAnnotation,
  processStatusDefinition,
  requestRestart,
  stackDefinition,
  stackOutputs,
  stackStatusDefinition,
} from '../../src/host/index.ts';
import type { Host } from './support.ts';
import { alive, condition, eventually, everything, isReady, port, startHost, withPatience } from './support.ts';

/** Tells who it is, and serves a port of its own. */
function stack(word: string, directory = 'data'): StackInput {
  const script = `console.log(${JSON.stringify(word)}); require('http').createServer((_, answer) => answer.end(${JSON.stringify(word)})).listen(process.env.PORT, '127.0.0.1')`;
  return {
    directory,
    services: {
      web: {
        command: ['node', '-e', script],
        environment: { PORT: port('web') },
        ready: { http: `http://127.0.0.1:${port('web')}/`, intervalMs: 20 },
      },
    },
  };
}

async function apply(host: Host, namespace: string, spec: StackInput): Promise<void> {
  await host.state.create(stackDefinition.create({ id: 'shop', namespace, spec, annotations: { [baseDirectoryAnnotation]: host.folder } }));
}

async function status(host: Host, namespace: string) {
  return (await host.state.get(processStatusDefinition.pointer('shop/web', namespace))).spec;
}

async function untilReady(host: Host, namespace: string): Promise<StackExtra> {
  const found = await withPatience(`shop in ${namespace} to be ready`, host, (signal) =>
    host.state.watchFor(stackStatusDefinition.pointer('shop', namespace), { condition: ({ spec }) => isReady(spec) }, { signal }),
  );
  return found.spec.extra as StackExtra;
}

test('stacks of one name in two namespaces, one of them new, share a directory and nothing else', async () => {
  await using host = await startHost();
  await apply(host, 'default', stack('at home'));
  const home = await untilReady(host, 'default');
  await apply(host, 'far/away', stack('far away'));
  const away = await untilReady(host, 'far/away');
  expect(away.directory).toEqual(home.directory);
  expect(away.ports?.web).not.toBe(home.ports?.web);
  for (const [extra, word] of [
    [home, 'at home'],
    [away, 'far away'],
  ] as const)
    expect(await (await fetch(`http://127.0.0.1:${extra.ports?.web}/`)).text()).toBe(word);
  for (const [namespace, word] of [
    ['default', 'at home'],
    ['far/away', 'far away'],
  ] as const) {
    const [output] = await stackOutputs(host.state, { id: 'shop', namespace });
    expect(readFileSync(output?.file as string, 'utf8')).toBe(`${word}\n`);
  }
  const before = await status(host, 'far/away');
  const other = await status(host, 'default');
  await requestRestart(host.state, host.environment, { id: 'shop', namespace: 'far/away' }, 'web');
  await eventually(host, 'another process', async () => (await status(host, 'far/away')).pid !== before.pid);
  await untilReady(host, 'far/away');
  expect(await status(host, 'default')).toEqual(other);
  await withPatience('the first to be gone', host, (signal) => host.state.teardownAndDestroy(stackDefinition.pointer('shop'), { signal }));
  expect(alive(Number(other.pid))).toBe(false);
  expect(alive(Number((await status(host, 'far/away')).pid))).toBe(true);
  expect(existsSync(join(host.folder, 'data/.logs/shop'))).toBe(false);
  expect(existsSync(join(host.folder, 'data/.logs/shop@far%2Faway/web.log'))).toBe(true);
  await withPatience('the second to be gone', host, (signal) =>
    host.state.teardownAndDestroy(stackDefinition.pointer('shop', 'far/away'), { signal }),
  );
  expect(await everything(host)).toEqual([]);
  expect(existsSync(join(host.folder, 'data'))).toBe(false);
});

test('what is said at the stop, at the next start and over an adoption is said in every namespace', async () => {
  await using host = await startHost({ onShutdown: 'leave' });
  for (const namespace of ['default', 'far']) await apply(host, namespace, stack(namespace, namespace));
  for (const namespace of ['default', 'far']) await untilReady(host, namespace);
  const before = await status(host, 'far');
  await host.stop();
  await host.startAgain({ onShutdown: 'stop' });
  await untilReady(host, 'far');
  expect(await status(host, 'far')).toEqual(before);
  await host.stop();
  expect(alive(Number(before.pid))).toBe(false);
  const stopped = (await host.state.get(stackStatusDefinition.pointer('shop', 'far'))).spec;
  expect(condition(stopped, 'Ready')).toMatchObject({ status: 'False', reason: 'OperatorStopped' });
  await host.startAgain();
  await untilReady(host, 'far');
  for (const namespace of ['default', 'far'])
    await withPatience('all to be gone', host, (signal) =>
      host.state.teardownAndDestroy(stackDefinition.pointer('shop', namespace), { signal }),
    );
  expect(await everything(host)).toEqual([]);
});

test('two stacks of two namespaces that claim one path: the second is told, with the namespace of the first', async () => {
  await using host = await startHost();
  const claims = (text: string): StackInput => ({
    directory: 'data',
    services: { a: { command: ['sleep', '1000'], files: { 'a.txt': text }, ready: { delayMs: 0 } } },
  });
  await apply(host, 'default', claims('mine'));
  await untilReady(host, 'default');
  await apply(host, 'far', claims('yours'));
  const told = await withPatience('the second to be told', host, (signal) =>
    host.state.watchFor(
      stackStatusDefinition.pointer('shop', 'far'),
      { condition: ({ spec }) => condition(spec, 'Files')?.message.includes('PathTaken') === true },
      { signal },
    ),
  );
  expect(condition(told.spec, 'Files')?.message).toContain('Files.host.steadystate.dev/default/shop/a.txt');
  expect(readFileSync(join(host.folder, 'data/a.txt'), 'utf8')).toBe('mine');
});
