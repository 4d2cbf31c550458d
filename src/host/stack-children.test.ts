import { expect, test } from 'vitest';
import type { StackPlan } from './stack-children.ts';
import { portOwners, stackChildren, stackPorts } from './stack-children.ts';
import type { StackInput } from './stack-definition.ts';
import { stackDefinition } from './stack-definition.ts';

const port = (name: string): string => `\${port:${name}}`;

function plan(services: StackInput['services'], more: Partial<StackPlan> = {}): StackPlan {
  const spec = stackDefinition.validate({ directory: './data', services });
  return { namespace: 'default', name: 'shop', annotations: {}, spec, directory: '/srv/data', ports: {}, ...more };
}

const byName = (children: ReturnType<typeof stackChildren>) =>
  new Map(children.map((child) => [`${child.ref.kind}/${child.ref.name}`, child]));

test('folders come before the files in them, those before the process, and processes in the order of dependsOn', () => {
  const children = byName(
    stackChildren(
      plan({ api: { command: ['node', 'x'], files: { 'a/b/c.txt': 'c', 'top.txt': 't' }, dependsOn: ['db'] }, db: { command: ['db'] } }),
    ),
  );
  expect([...children.keys()]).toEqual([
    'Directories/shop',
    'Directories/shop/a',
    'Directories/shop/a/b',
    'Directories/shop/.logs',
    'Directories/shop/.logs/shop',
    'Files/shop/a/b/c.txt',
    'Files/shop/top.txt',
    'Processes/shop/api',
    'Processes/shop/db',
  ]);
  expect(children.get('Directories/shop/a/b')?.dependsOn).toEqual(['Directories/shop/a']);
  expect(children.get('Files/shop/a/b/c.txt')?.dependsOn).toEqual(['Directories/shop/a/b']);
  expect(children.get('Processes/shop/api')?.dependsOn).toEqual([
    'Directories/shop/.logs/shop',
    'Files/shop/a/b/c.txt',
    'Files/shop/top.txt',
    'Processes/shop/db',
  ]);
  expect(children.get('Processes/shop/api')?.body).toEqual({
    command: ['node', 'x'],
    directory: '/srv/data',
    environment: {},
    outputFile: '/srv/data/.logs/shop/api.log',
    after: ['shop/db'],
  });
});

test('ports are put in command, environment and checks, and nowhere else', () => {
  const web = {
    command: ['serve', port('web')],
    environment: { URL: `http://x:${port('web')}/` },
    files: { 'f.txt': port('web'), 'g.json': { text: port('web') } },
    ready: { http: `http://127.0.0.1:${port('web')}/` },
  };
  const children = byName(stackChildren(plan({ web }, { ports: { web: 20_000 } })));
  expect(children.get('Processes/shop/web')?.body).toMatchObject({
    command: ['serve', '20000'],
    environment: { URL: 'http://x:20000/' },
    ready: { http: 'http://127.0.0.1:20000/' },
    ports: { web: 20_000 },
  });
  expect(children.get('Files/shop/f.txt')?.body).toMatchObject({ content: port('web') });
  expect(children.get('Files/shop/g.json')?.body).toMatchObject({ content: `{\n  "text": "${port('web')}"\n}\n` });
});

test('who opens a port: the service that it is named after, else the only one that names it', () => {
  const run = (...ports: string[]) => ({ command: ['run', ...ports.map(port)] });
  const { spec } = plan({ client: run('api', 'api-admin', 'shared', 'own'), api: run('api', 'api-admin'), other: run('shared', 'apix') });
  expect(stackPorts(spec)).toEqual(['api', 'api-admin', 'shared', 'own', 'apix']);
  expect(Object.fromEntries(portOwners(spec))).toEqual({ api: 'api', 'api-admin': 'api', own: 'client', apix: 'other' });
});

test('files: text as it is, data as JSON with every digit, a mode where one is given', () => {
  const files = {
    text: 'x',
    list: [1, 'a'],
    number: 5,
    empty: { a: [], o: {}, nothing: null },
    big: { id: 9007199254740993n, text: '\u00010\u0001' },
    script: { content: '#!', mode: '0755' },
    data: { json: { content: 'x', mode: 'y' }, mode: '600' },
  };
  const children = byName(stackChildren(plan({ a: { command: ['x'], files } })));
  const body = (name: string): unknown => children.get(`Files/shop/${name}`)?.body;
  expect(body('text')).toEqual({ path: '/srv/data/text', within: '/srv/data', content: 'x', mode: '0644' });
  expect(body('list')).toMatchObject({ content: '[\n  1,\n  "a"\n]\n' });
  expect(body('number')).toMatchObject({ content: '5\n' });
  expect(body('big')).toMatchObject({ content: '{\n  "id": 9007199254740993,\n  "text": "\\u00010\\u0001"\n}\n' });
  expect(body('empty')).toMatchObject({ content: '{\n  "a": [],\n  "o": {},\n  "nothing": null\n}\n' });
  expect(body('script')).toMatchObject({ content: '#!', mode: '0755' });
  expect(body('data')).toMatchObject({ content: '{\n  "content": "x",\n  "mode": "y"\n}\n', mode: '600' });
});

test('a name that a file system would take for something else is written otherwise', () => {
  const service = { a: { command: ['x'] } };
  const output = (name: string): unknown => {
    const { body } = stackChildren(plan(service, { name })).at(-1) ?? {};
    return (body as { readonly outputFile?: string } | undefined)?.outputFile;
  };
  expect(output('../../etc')).toBe('/srv/data/.logs/..%2F..%2Fetc/a.log');
  expect(output('..')).toBe('/srv/data/.logs/%2E%2E/a.log');
  expect(output('größe 1')).toBe('/srv/data/.logs/gr%C3%B6%C3%9Fe%201/a.log');
});

test('a restart that is asked for, and a file that is named in restartOn, change the process and nothing else', () => {
  const services = (text: string): StackInput['services'] => ({
    a: { command: ['x'], files: { f: text, g: text }, restartOn: ['f'] },
    b: { command: ['x'] },
  });
  const before = byName(stackChildren(plan(services('1'))));
  const after = byName(stackChildren(plan(services('2'), { annotations: { 'host.steadystate.dev/restart-at.b': 'now' } })));
  expect(after.get('Processes/shop/a')?.body).not.toEqual(before.get('Processes/shop/a')?.body);
  expect(after.get('Processes/shop/b')?.body).toEqual({ ...(before.get('Processes/shop/b')?.body as object), restartAt: 'now' });
});
