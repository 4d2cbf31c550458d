import { expect, test } from 'vitest';
import type { ControllerGraph } from './graph.ts';
import { graphToDot, graphToMermaid } from './graph.ts';

const graph: ControllerGraph = {
  controllers: [
    {
      name: 'Pies',
      kind: 'queue',
      inputs: [
        { namespace: 'default', type: 'Apples', kind: 'primary' },
        { namespace: 'default', type: 'Apples', id: 'one', kind: 'mapped' },
      ],
      outputs: [{ type: 'Pies', kind: 'exclusive' }],
    },
    { name: 'a "b\\\n#<c>', kind: 'classic', inputs: [{ namespace: 'x', type: 'Pies', kind: 'weak' }], outputs: [] },
  ],
};

test('Graphviz: a controller and a type of one name are two nodes; text is escaped', () => {
  expect(graphToDot(graph).split('\n')).toEqual([
    'digraph controllers {',
    '  rankdir=LR;',
    '  c0 [label="Pies", shape=box, style=filled];',
    '  c1 [label="a \\"b\\\\\\n#<c>", shape=box, style=filled];',
    '  t0 [label="Apples"];',
    '  t1 [label="Pies"];',
    '  t0 -> c0 [label="primary (default)"];',
    '  t0 -> c0 [label="mapped (default/one)"];',
    '  c0 -> t1 [label="exclusive"];',
    '  t1 -> c1 [label="weak (x)"];',
    '}',
    '',
  ]);
});

test('Mermaid: the same, on one line each', () => {
  expect(graphToMermaid(graph).split('\n')).toEqual([
    'flowchart LR',
    '  c0["Pies"]',
    '  c1["a #34;b#92;#10;#35;#60;c#62;"]',
    '  t0("Apples")',
    '  t1("Pies")',
    '  t0 -->|"primary (default)"| c0',
    '  t0 -->|"mapped (default/one)"| c0',
    '  c0 -->|"exclusive"| t1',
    '  t1 -->|"weak (x)"| c1',
    '',
  ]);
});
