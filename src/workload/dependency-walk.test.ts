import { expect, test } from 'vitest';
import { prepareChildren } from './children.ts';
import { walkDependencies } from './dependency-walk.ts';
import type { Desired, WorkloadView } from './port.ts';

type Graph = Readonly<Record<string, readonly string[]>>;

function walk(graph: Graph): { readonly order: readonly string[]; readonly circles: readonly string[] } {
  const circles: string[] = [];
  const order = walkDependencies(
    Object.keys(graph),
    (name) => graph[name] ?? [],
    (circle, index) => void circles.push(`${circle.join('>')} ${index}`),
  );
  return { order, circles };
}

test.each<[string, Graph, string, readonly string[]]>([
  ['nothing', {}, '', []],
  ['a diamond', { a: ['b', 'c'], b: ['d'], c: ['d'], d: [] }, 'd b c a', []],
  ['what is behind already', { a: [], b: ['a'], c: ['b', 'a'] }, 'a b c', []],
  ['a name that depends on itself', { a: ['a'], b: [] }, 'a b', ['a>a 0']],
  ['a circle', { a: ['b'], b: ['x', 'c'], c: ['a'] }, 'x c b a', ['a>b>c>a 0']],
  ['two circles', { a: ['b', 'c'], b: ['a'], c: ['d', 'a'], d: ['c'] }, 'b d c a', ['a>b>a 0', 'c>d>c 0', 'a>c>a 1']],
  ['one name twice', { a: ['b', 'b'], b: [] }, 'b a', []],
])('%s', (_what, graph, order, circles) => {
  expect(walk(graph)).toEqual({ order: order === '' ? [] : order.split(' '), circles });
});

const many = 20_000;

test('a row of very many is no deeper than a short one', () => {
  const graph = Object.fromEntries(Array.from({ length: many }, (_, index) => [`n${many - index}`, [`n${many - index - 1}`]]));
  const { order, circles } = walk(graph);
  expect([order.length, order[0], order.at(-1), circles]).toEqual([many + 1, 'n0', `n${many}`, []]);
  expect(walk({ ...graph, n0: [`n${many}`] }).circles).toHaveLength(1);
});

test('children in such a row get their orders', () => {
  const ref = (index: number): Desired['ref'] => ({ group: 'g', version: '', kind: 'K', namespace: 'n', name: `n${index}` });
  const children = Array.from({ length: many }, (_, index) => many - 1 - index).map((index) => ({
    ref: ref(index),
    name: `n${index}`,
    labels: {},
    annotations: {},
    body: {},
    dependsOn: index === 0 ? [] : [`n${index - 1}`],
  }));
  const view = { key: { group: 'g', kind: 'P', namespace: 'n', name: 'p' }, uid: 'u' } as WorkloadView;
  const prepared = prepareChildren(view, children);
  expect(prepared.map(({ order }) => order)).toEqual(Array.from({ length: many }, (_, index) => many - 1 - index));
});
