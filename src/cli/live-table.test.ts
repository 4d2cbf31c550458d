import { expect, test } from 'vitest';
import { makeResource } from '../resource/index.ts';
import type { InventoryEntry } from '../workload/index.ts';
import type { ShownSubject } from './live-table.ts';
import { frame } from './live-table.ts';
import { textWidth } from './output/text-width.ts';

const since = '2026-01-01T00:00:00Z';
const nowMs = Date.parse('2026-01-01T00:00:12Z');
const pointer = (id: string, type = 'Stacks.example.dev') => ({ namespace: 'default', type, id });
const child = (name: string, ready: boolean, reason = '', message = ''): InventoryEntry =>
  ({ kind: 'Processes', name, ready, reason, message, lastTransitionTime: since }) as InventoryEntry;
const phase = (type: string, status: 'True' | 'False' | 'Unknown') => ({
  type,
  status,
  reason: '',
  message: '',
  observedGeneration: 1,
  lastTransitionTime: since,
});
const subject = (more: Partial<ShownSubject>): ShownSubject => ({
  pointer: pointer('shop'),
  resource: undefined,
  status: undefined,
  ready: false,
  reason: 'waiting for its controller',
  ...more,
});
const status = {
  conditions: [phase('Files', 'True'), phase('Processes', 'False'), phase('Complete', 'Unknown'), phase('Ready', 'False')],
  children: [child('shop/db', true), child('shop/api', false, 'BackOff', `exited with 1\u001b[2J: ${'x'.repeat(60)}`)],
};

test('80 columns: phases, children, reasons and time; nothing is wider', () => {
  const text = frame([subject({ status })], { nowMs, elapsedMs: 12_300, columns: 80, rows: 24 });
  expect(text).toBe(`○ shop   ✓ Files  ▸ Processes  · Complete   12s
  KIND        NAME       STATE     FOR   REASON
  Processes   shop/db    ready     12s
  Processes   shop/api   waiting   12s   BackOff: exited with 1\\x1b[2J: xxxxxxx…
`);
  for (const line of text.split('\n')) expect(textWidth(line)).toBeLessThanOrEqual(80);
});

test('200 columns: the whole reason', () => {
  const text = frame([subject({ status })], { nowMs, elapsedMs: 0, columns: 200, rows: 24 });
  expect(text).toContain(`BackOff: exited with 1\\x1b[2J: ${'x'.repeat(60)}\n`);
});

test('several types: each with its word; what has no phases says what it waits for; what goes says so', () => {
  const resource = makeResource({ metadata: { ...pointer('old'), phase: 'tearingDown', finalizers: ['f'] }, spec: {} });
  const text = frame(
    [
      subject({ pointer: pointer('資源'), ready: true, reason: '' }),
      subject({ pointer: pointer('a', 'Rocks.example.dev'), reason: 'NotYet: soon' }),
      subject({ pointer: pointer('old'), resource }),
    ],
    { nowMs, elapsedMs: 150_000, columns: 80, rows: 24 },
  );
  expect(text).toBe(`● stacks/資源   2m30s
○ rocks/a   2m30s   NotYet: soon
○ stacks/old   2m30s   being torn down   waiting for its controller
`);
});

test('a low screen: what waits is shown, what is ready is counted', () => {
  const children = [...Array.from({ length: 30 }, (_, index) => child(`shop/r${index}`, true)), child('shop/last', false, 'Starting')];
  const text = frame([subject({ status: { children } })], { nowMs, elapsedMs: 0, columns: 80, rows: 10 });
  expect(text.split('\n')).toHaveLength(9);
  expect(text).toContain('shop/last');
  expect(text).toContain('  … and 26 more\n');
});
