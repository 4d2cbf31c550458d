import { expect, test } from 'vitest';
import { isInvalidError } from '../resource/index.ts';
import { fileDefinition } from './file-definitions.ts';
import { processDefinition } from './process-definition.ts';
import { stackDefinition } from './stack-definition.ts';
import { stackIssues } from './stack-issues.ts';

function problem(spec: unknown): string {
  try {
    stackDefinition.validate(spec);
  } catch (error) {
    expect(isInvalidError(error)).toBe(true);
    return (error as Error).message;
  }
  throw new Error('it was accepted');
}

const service = (more: object = {}): object => ({ command: ['run'], ...more });
const stack = (more: object = {}): object => ({ directory: './data', services: { a: service(more), b: service() } });

test('what people write is kept, and environment numbers become their text', () => {
  const spec = stackDefinition.validate({
    directory: './data',
    services: {
      a: {
        command: ['run', '--fast'],
        environment: { PORT: 80, DEBUG: true, RATE: 0.5, NAME: 'x', BIG: 9007199254740993n },
        files: { 'a.json': { deep: [1] } },
      },
    },
  });
  expect(spec).toEqual({
    directory: './data',
    services: {
      a: {
        command: ['run', '--fast'],
        environment: { PORT: '80', DEBUG: 'true', RATE: '0.5', NAME: 'x', BIG: '9007199254740993' },
        files: { 'a.json': { deep: [1] } },
      },
    },
  });
  // Validating what was stored changes nothing, so that an unchanged file is no write.
  expect(stackDefinition.validate(spec)).toBe(spec);
});

test.each<[string, unknown, RegExp | string]>([
  ['an unknown field', stack({ restat: {} }), 'spec.services.a.restat: unknown field: did you mean restart?'],
  ['an unknown field at the top', { ...stack(), service: {} }, 'spec.service: unknown field: did you mean services?'],
  ['a command as text', stack({ command: 'node x' }), 'spec.services.a.command: expected a list: the program, then its arguments'],
  ['an empty command', stack({ command: [] }), 'spec.services.a.command: expected a list'],
  ['a null variable', stack({ environment: { A: null } }), 'spec.services.a.environment.A: expected text, a number or a boolean'],
  ['a bad variable name', stack({ environment: { 'A=B': '1' } }), 'the name of an environment variable must not be empty or hold ='],
  ['a bad service name', { directory: '.', services: { 'a b': service() } }, 'the name of a service is 1 to 63 letters'],
  ['a path as service name', { directory: '.', services: { '../x': service() } }, 'the name of a service is 1 to 63 letters'],
  [
    'a mode as number',
    stack({ files: { f: { content: '', mode: 600 } } }),
    'spec.services.a.files.f.mode: expected text such as "0644": write it in quotes',
  ],
  ['a wrong mode', stack({ files: { f: { content: '', mode: '0999' } } }), 'spec.services.a.files.f.mode: expected three octal digits'],
  [
    'content that is data',
    stack({ files: { f: { content: { a: 1 }, mode: '0600' } } }),
    'spec.services.a.files.f.content: expected text; use json for data',
  ],
  ['no check', stack({ ready: {} }), 'spec.services.a.ready: expected exactly one of http, tcp, log, command, delayMs, found none'],
  ['two checks', stack({ ready: { tcp: '1', delayMs: 1 } }), 'found tcp and delayMs'],
  ['an expression that is none', stack({ ready: { log: { expression: '(' } } }), 'is no RE2 expression'],
  ['an unknown policy', stack({ restart: { policy: 'sometimes' } }), 'spec.services.a.restart.policy: expected always, onFailure or never'],
  ['an unknown signal', stack({ stop: { signal: 'TERM' } }), 'spec.services.a.stop.signal: expected one of SIGTERM'],
  ['a fraction of a millisecond', stack({ stop: { graceMs: 0.5 } }), 'expected a whole number of milliseconds'],
  [
    'an unknown dependency',
    stack({ dependsOn: ['bb'] }),
    'spec.services.a.dependsOn[0]: there is no service bb: did you mean b?; services are a, b',
  ],
  ['a dependency on itself', stack({ dependsOn: ['a'] }), 'spec.services.a.dependsOn[0]: a service cannot depend on itself'],
  [
    'a circle',
    { directory: '.', services: { a: service({ dependsOn: ['b'] }), b: service({ dependsOn: ['c'] }), c: service({ dependsOn: ['a'] }) } },
    'in a circle: a → b → c → a',
  ],
  ['an absolute path', stack({ files: { '/etc/passwd': '' } }), 'spec.services.a.files["/etc/passwd"]: is outside directory'],
  ['a path that leads out', stack({ files: { 'x/../../y': '' } }), 'is outside directory: x/../../y leads out of it'],
  ['a folder as a file', stack({ files: { 'x/': '' } }), 'x/ names a folder, not a file'],
  ['a file among the outputs', stack({ files: { '.logs/x': '' } }), '.logs holds the output of the services'],
  ['one file in two spellings', stack({ files: { 'x/y': '', 'x/./y': '' } }), 'its file x/y claims x/y too'],
  ['a file below a file', stack({ files: { x: '', 'x/y': '' } }), 'needs a folder x, which its file x declares as a file'],
  [
    'restartOn of no file',
    stack({ files: { 'a.txt': '' }, restartOn: ['b.txt'] }),
    'spec.services.a.restartOn[0]: b.txt is no file of this service: did you mean a.txt?',
  ],
  ['a mistyped port', stack({ command: ['run', '$' + '{prot:a}'] }), 'spec.services.a.command[1]: $' + '{prot:a} is not understood here'],
  [
    'a port in a check',
    stack({ ready: { http: 'http://x:$' + '{port}' } }),
    'spec.services.a.ready.http: $' + '{port} is not understood here',
  ],
  [
    'a check of no address',
    stack({ ready: { tcp: 'host:port' } }),
    'spec.services.a.ready.tcp: host:port is no address; expected host:port',
  ],
  ['a check of no URL', stack({ ready: { http: 'localhost:80' } }), 'spec.services.a.ready.http: expected an http or https URL'],
  ['a missing directory', { services: {} }, 'spec.directory: '],
  ['a NUL', stack({ command: ['a\0b'] }), 'must not hold a NUL character'],
])('%s is refused with the field and what to do', (_name, spec, expected) => {
  expect(problem(spec)).toContain(expected);
});

test('every issue is told at once', () => {
  const text = problem(stack({ comand: [], dependsOn: [1], restart: { policy: 'x' } }));
  for (const path of ['spec.services.a.comand', 'spec.services.a.dependsOn[0]', 'spec.services.a.restart.policy'])
    expect(text).toContain(path);
});

test('an object with a mode is a file with a mode; any other object is its content', () => {
  expect(() =>
    stackDefinition.validate(stack({ files: { a: { mode: 'x' }, b: { content: 1 }, c: { mode: 1, content: '', more: 1 } } })),
  ).not.toThrow();
});

test('children that people write by hand are checked too', () => {
  expect(() =>
    processDefinition.create({ id: 'x', spec: { command: ['a'], directory: 'rel', environment: {}, outputFile: '/x' } }),
  ).toThrow('spec.directory: expected an absolute path');
  expect(() => fileDefinition.create({ id: 'x', spec: { path: 'rel', within: '/x', content: '' } })).toThrow(
    'spec.path: expected an absolute path',
  );
});

test('types have aliases, columns and a JSON schema', () => {
  expect(stackDefinition.displayType).toBe('Stack');
  expect(processDefinition.displayType).toBe('Process');
  expect(processDefinition.printColumns.map(({ name }) => name)).toEqual(['STATE', 'PID', 'RESTARTS', 'READY', 'AGE', 'REASON']);
  expect(stackDefinition.jsonSchema).toMatchObject({ type: 'object', additionalProperties: false, required: ['directory', 'services'] });
});

test('a row of very many services is checked in a moment, and of very many circles only some are told', () => {
  const many = 10_000;
  const services = Object.fromEntries(
    Array.from({ length: many }, (_, index) => many - 1 - index).map((index) => [
      `s${index}`,
      { command: ['x'], dependsOn: index === 0 ? [] : [`s${index - 1}`] },
    ]),
  );
  expect(stackIssues({ services })).toEqual([]);
  const first = { command: ['x'], dependsOn: Array.from({ length: 50 }, (_, index) => `s${index + 1}`) };
  const issues = stackIssues({ services: { ...services, s0: first } });
  expect(issues).toHaveLength(10);
  expect(issues[0]).toEqual({
    path: ['services', 's0', 'dependsOn', 0],
    message: 'services depend on each other in a circle: s1 → s0 → s1; remove one of these',
  });
});
