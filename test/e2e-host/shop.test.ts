import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { StackExtra, StackInput } from '../../src/host/index.ts';
import { listLeftovers } from '../../src/host/index.ts';
import { eventually, startHost } from './support.ts';

interface Shop {
  readonly products: readonly { readonly id: string; readonly stock: number }[];
  readonly orders: readonly { readonly id: number; readonly state: string }[];
  readonly total: number;
}

test('the shop of the examples comes up, sells, ships, and comes back after a kill', async () => {
  await using host = await startHost();
  const { spec } = parse(readFileSync(join(import.meta.dirname, '../../examples/host/shop.yaml'), 'utf8')) as { spec: StackInput };
  await host.apply('shop', spec);
  const { extra } = await host.untilReady('shop');
  const { web } = (extra as StackExtra).ports as { web: number };
  const url = `http://127.0.0.1:${web}`;
  const shop = async (): Promise<Shop> => (await (await fetch(`${url}/api/state`)).json()) as Shop;
  const page = await (await fetch(url)).text();
  expect(page).toContain('<title>The Steady Shop</title>');
  expect(page).toMatch(/`Buy one \$\{name\}`/);
  const bought = await fetch(`${url}/api/orders/teapot`, { method: 'POST' });
  expect(bought.status).toBe(201);
  const { id } = (await bought.json()) as { id: number };
  await eventually(host, 'the worker to ship it', async () =>
    (await shop()).orders.some((order) => order.id === id && order.state !== 'placed'),
  );
  expect((await fetch(`${url}/api/orders/nothing`, { method: 'POST' })).status).toBe(404);
  // Events reach a browser through all three servers.
  const events = await fetch(`${url}/api/events`);
  const reader = (events.body as ReadableStream<Uint8Array>).getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toMatch(/^data: \{"products":/);
  await reader.cancel();

  const api = await host.status('shop/api');
  process.kill(Number(api.pid), 'SIGKILL');
  await host.until('shop/api', (status) => status.ready && status.pid !== api.pid);
  expect((await shop()).total).toBeGreaterThanOrEqual(id);

  // The page is read anew for each visitor, so an edit on disk shows – until it is put right.
  const file = join(host.folder, 'shop-data/index.html');
  writeFileSync(file, 'vandalised');
  await eventually(host, 'the page to be put right', () => readFileSync(file, 'utf8') === page);

  await host.remove('shop');
  expect(existsSync(file)).toBe(false);
  expect(await listLeftovers(host.environment.files, join(host.folder, 'shop-data'))).toEqual(['orders.json']);
});
