import { execFile, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { program, smallStack, Workplace } from './harness.ts';
import { runInProcess } from './in-process.ts';

const run = promisify(execFile);
let place: Workplace;

/** Every character that a shell would act on. */
const evil = `a b;$(touch stolen)'"&|`;

beforeAll(async () => {
  place = await Workplace.make();
  await place.write('small.yaml', smallStack.replace('id: small', 'id: small, labels: { team: web }, finalizers: [keep]'));
  await place.start(['up', 'small.yaml']).shows('ready: small');
  const thing = (id: string, namespace: string) => JSON.stringify({ metadata: { namespace, type: 'Things.example.dev', id }, spec: {} });
  const things = [thing(evil, 'default'), thing('a\u202ehidden', 'default'), thing('far', 'elsewhere')];
  expect((await place.run(['apply', '-f', '-'], { input: `{"items":[${things}]}` })).code).toBe(0);
});

afterAll(() => place[Symbol.asyncDispose]());

/** What the program offers for the last word of a line. */
async function offered(...words: readonly string[]): Promise<readonly string[]> {
  const result = await runInProcess(place.folder, ['__complete', '--timeout', '30s', '--', ...words]);
  expect(result).toMatchObject({ code: 0, stderr: '', open: {} });
  return result.stdout.split('\n').flatMap((line) => (line === '' ? [] : [line.split('\t')[0] as string]));
}

test.each([
  [['descr'], ['describe']],
  [['wa'], ['wait', 'watch']],
  [['get', '--sort'], ['--sort-by']],
  [['get', '--all-namespaces', '--all'], []],
  [['apply', '-f', 'x', '--file'], ['--filename']],
  [
    ['get', 'stac'],
    ['stack', 'stacks', 'stackstatus', 'stackstatuses'],
  ],
  [['get', 'Stacks.'], ['Stacks.host.steadystate.dev']],
  [['get', 'STACKS'], []],
  [['get', 'stack', ''], ['small']],
  [['get', 'stack', 'small', ''], []],
  [
    ['get', 'processes', 'small/'],
    ['small/idle', 'small/web'],
  ],
  [['get', '-o', 'wide', 'processes', 'small/w'], ['small/web']],
  [['get', 'processes', '-owide', '--no-headers', 'small/w'], ['small/web']],
  [['describe', 'stack', ''], ['small']],
  [['describe', 'stack', 'small', ''], []],
  [['get', 'Things.example.dev', ''], [evil]],
  [['get', 'Things.example.dev', '-n', 'elsewhere', ''], ['far']],
  [['get', 'Things.example.dev', '--namespace=elsewhere', ''], ['far']],
  [['get', 'stack', '-n', 'else'], ['elsewhere']],
  [
    ['get', 'stack', '--output=js'],
    ['--output=json', '--output=jsonpath='],
  ],
  [
    ['get', 'stack', '-o', 'js'],
    ['json', 'jsonpath='],
  ],
  [
    ['graph', '-o', ''],
    ['mermaid', 'dot', 'json'],
  ],
  [
    ['wait', 'stack', 'small', '--for='],
    ['--for=ready', '--for=destroyed', '--for=create', '--for=condition=', '--for=jsonpath='],
  ],
  [['wait', 'stack', 'small', '--for', 'r'], ['ready']],
  [['events', '--for', 'stack/'], ['stack/small']],
  [['describe', 'stack/'], ['stack/small']],
  [['get', 'process/small/w'], ['process/small/web']],
  [['apply', '--dry-run', '-f', 'x', '--wa'], ['--wait']],
  [
    ['apply', '--dry-run='],
    ['--dry-run=server', '--dry-run=client', '--dry-run=none'],
  ],
  [['events', '--for=process/small/w'], ['--for=process/small/web']],
  [['events', '--types', 'W'], ['Warning']],
  [['logs', ''], ['small']],
  [
    ['logs', 'small', ''],
    ['web', 'idle'],
  ],
  [['logs', 'none', ''], []],
  [['restart', 'small', 'i'], ['idle']],
  [
    ['label', 'stack', 'small', 'te'],
    ['team=', 'team-'],
  ],
  [['release-finalizer', 'stack', 'small', 'k'], ['keep']],
  [['up', ''], [':files']],
  [['apply', '-f', ''], [':files']],
  [['apply', '--filename', ''], [':files']],
  [
    ['completion', ''],
    ['bash', 'zsh', 'fish'],
  ],
  [
    ['store', 're'],
    ['repair', 'restore'],
  ],
  [['store', 'import', ''], [':files']],
  [['up', '--until', ''], ['ready']],
  [['get', 'unknown', ''], []],
  [['nonsense', ''], []],
  [['get', '--timeout', ''], []],
  [['get', 'stack', '--store', 'sqlite:none.db', ''], []],
  [['version', ''], []],
] as [readonly string[], readonly string[]][])('%j', async (words, expected) => {
  expect(await offered(...words)).toEqual(expected);
});

test('types of an empty word, one name each, with the whole type beside it', async () => {
  const { stdout } = await runInProcess(place.folder, ['__complete', '--timeout', '30s', '--', 'get', '']);
  expect(stdout).toMatch(/^stack\tStacks\.host\.steadystate\.dev$/m);
  expect(stdout.match(/\tStacks\.host/g)).toHaveLength(1);
});

test('no store is no error, and no store is made', async () => {
  await using empty = await Workplace.make();
  expect(await runInProcess(empty.folder, ['__complete', '--timeout', '30s', '--', 'get', ''])).toMatchObject({
    code: 0,
    stdout: '',
    stderr: '',
  });
});

const nameWithPrefix = /^a/;

/** Runs a shell that knows the program as the word that people type. */
async function inShell(shell: string, args: readonly string[], script: string): Promise<readonly string[]> {
  const { stdout } = await run(shell, [...args, '-c', script], {
    cwd: place.folder,
    env: { ...process.env, STEADYSTATE_NODE: process.execPath, STEADYSTATE_MAIN: program },
  });
  return stdout.split('\n');
}

function has(shell: string): boolean {
  try {
    execFileSync(shell, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** The program as a shell function; a busy machine gets more time than a person would wait. */
const patient = `steadystate() {
  if [ "$1" = __complete ]; then shift; set -- __complete --timeout 30s "$@"; fi
  "$STEADYSTATE_NODE" "$STEADYSTATE_MAIN" "$@"
}
`;

describe('bash', () => {
  const complete = async (...lines: readonly string[]): Promise<readonly string[]> =>
    inShell(
      'bash',
      ['--norc'],
      `${patient}source <(steadystate completion bash)
complete -p steadystate
complete_at() { COMP_LINE="$1"; COMP_POINT=\${#1}; COMPREPLY=(); _steadystate; printf '%s,' "\${COMPREPLY[@]}"; echo; }
${lines.map((line) => `complete_at ${JSON.stringify(line).replaceAll('$', '\\$')}`).join('\n')}
if [ -e stolen ]; then echo stolen; fi
`,
    );

  test('commands, options, types, ids, services, files, values behind an equals sign', async () => {
    const [registered, ...found] = await complete(
      'steadystate descr',
      'steadystate get --sort',
      'steadystate get processes small/',
      'steadystate logs small ',
      'steadystate apply -f sma',
      'steadystate get stack --output=wi',
      'steadystate get Stacks.h',
      'steadystate get stack none',
    );
    expect(registered).toBe('complete -F _steadystate steadystate');
    expect(found.slice(0, 8)).toEqual([
      'describe,',
      '--sort-by,',
      'small/idle,small/web,',
      'web,idle,',
      'small.yaml,',
      'wide,',
      'Stacks.host.steadystate.dev,',
      ',',
    ]);
  });

  test('an id with what a shell acts on is one quoted word, and runs nothing', async () => {
    const [, line = '', more] = await complete('steadystate get Things.example.dev ');
    const quoted = line.slice(0, -1);
    expect(quoted).not.toMatch(/(?<!\\)[ ;$('"&|]/);
    const [same] = await inShell('bash', ['--norc'], `printf '%s\\n' ${quoted}`);
    expect(same).toBe(evil);
    expect(more).toBe('');
  });
});

// What runs only where the shell is: a machine without it cannot tell.
describe.skipIf(!has('zsh'))('zsh', () => {
  const complete = (...words: readonly string[]): Promise<readonly string[]> =>
    inShell(
      'zsh',
      ['-f'],
      `${patient}compdef() { echo "compdef $*"; }
compadd() { while [ "$1" != -- ]; do shift; done; shift; print -rl -- "$@"; }
_files() { echo files; }
source <(steadystate completion zsh)
words=(steadystate ${words.map((word) => `'${word}'`).join(' ')}); CURRENT=\${#words}
_steadystate || true
`,
    );

  test.each([
    [['descr'], ['describe']],
    [
      ['logs', 'small', ''],
      ['web', 'idle'],
    ],
    [['get', 'Things.example.dev', ''], [evil]],
    [['apply', '-f', ''], ['files']],
    [['get', 'stack', 'none'], []],
  ] as [readonly string[], readonly string[]][])('%j', async (words, expected) => {
    expect((await complete(...words)).filter((line) => line !== '')).toEqual(['compdef _steadystate steadystate', ...expected]);
  });
});

describe.skipIf(!has('fish'))('fish', () => {
  test.each([
    ['descr', ['describe']],
    ['logs small ', ['idle', 'web']],
    ['get Things.example.dev a', [evil]],
    ['apply -f sma', ['small.yaml']],
    ['get stack none', []],
  ])('%s', async (line, expected) => {
    const lines = await inShell(
      'fish',
      ['--no-config'],
      `function steadystate
  if test $argv[1] = __complete
    $STEADYSTATE_NODE $STEADYSTATE_MAIN __complete --timeout 30s $argv[2..-1]
  else
    $STEADYSTATE_NODE $STEADYSTATE_MAIN $argv
  end
end
steadystate completion fish | source
complete -C 'steadystate ${line}'
`,
    );
    const words = lines.filter((each) => each !== '').map((each) => each.split('\t')[0] as string);
    expect(words.sort()).toEqual(expected.map((word) => (nameWithPrefix.test(word) ? expect.stringContaining('touch stolen') : word)));
  });
});

test('the scripts are text that their shells can read, and name nothing of this machine', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { stdout } = await runInProcess(place.folder, ['completion', shell]);
    expect(stdout).toContain('steadystate __complete -- ');
    expect(stdout).not.toMatch(/\/tmp|dist|node/);
  }
});
