import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { memoryState } from '../../src/backends/memory/index.ts';
import { openRemoteState } from '../../src/backends/remote/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import { serveState } from '../../src/server/index.ts';
import type { StateEvent } from '../../src/state/index.ts';
import { filter, forbidden } from '../../src/state/index.ts';

const open = { namespace: 'default', type: 'Open.example.dev' };
const secret = { namespace: 'default', type: 'Secrets.example.dev' };

test('a denied kind among several is told to a client far away with its kind and error; the others go on', async () => {
  const environment = nodeEnvironment();
  const directory = await mkdtemp(join(tmpdir(), 'steadystate-'));
  {
    await using core = memoryState({ environment });
    const guarded = filter(
      core,
      ({ type, verb }) => {
        if (type === secret.type) throw forbidden(`${verb} of ${type} is not for you`);
      },
      { environment },
    );
    const control = { version: '1', pid: 1, store: 'memory:' };
    await using server = await serveState({ state: guarded, environment, listen: ['unix:s'], directory, control });
    await using remote = await openRemoteState({ address: server.addresses[0] as string, environment });
    await core.create({ metadata: { ...open, id: 'a' }, spec: 1 });
    await using watch = await remote.watchKinds([secret, open], { bootstrapContents: true });
    await core.create({ metadata: { ...secret, id: 's' }, spec: 1 });
    await core.create({ metadata: { ...open, id: 'b' }, spec: 1 });
    const events: StateEvent[] = [];
    for await (const batch of watch) {
      events.push(...batch);
      if (events.some((event) => event.type === 'created' && event.resource.metadata.id === 'b')) break;
    }
    expect(events.map(({ type }) => type)).toEqual(['kindErrored', 'created', 'bootstrapped', 'created']);
    expect(events[0]).toMatchObject({
      kind: secret,
      error: { code: 'Forbidden', message: expect.stringContaining('watch of Secrets.example.dev is not for you') },
    });
    await expect(remote.watchKind(secret)).rejects.toMatchObject({ code: 'Forbidden' });
  }
  await rm(directory, { recursive: true });
  expect(environment.open.counts()).toEqual({});
});
