import { mkdir } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Background, CliResult } from './harness.ts';
import { smallStack, Workplace } from './harness.ts';

// Every example of every --help is run as it stands, in a folder that has what the examples name.

const named = (id: string): string =>
  smallStack.replace('id: small', `id: ${id}, labels: { team: web }`).replaceAll('web:', 'api:').replaceAll('[web]', '[api]');

/** What goes on until it is interrupted, and what it shows before. */
const lasting: Readonly<Record<string, RegExp>> = {
  up: /ready: shop/,
  serve: /serving/,
  'serve operator.mjs --listen unix:./run/api.sock': /serving/,
  'get processes -w': /shop\/api/,
  'events --for stack/shop -w': /stacks\/shop/,
  'watch processes': /bootstrapped/,
  'watch stacks -o json --from BOOKMARK': /shop/,
  'logs shop api -f --tail 20': /begun/,
};
/** These hold the store of their folder, so they get a folder of their own. */
const alone = /^(?:up|serve)\b/;

async function workplace(): Promise<Workplace> {
  const place = await Workplace.make();
  const shop = named('shop');
  for (const [name, text] of [
    ['shop.yaml', shop],
    ['my.yaml', named('my')],
    ['more.yaml', named('more').replace('./data', './more-data')],
    ['site.yaml', 'metadata: { type: stack, id: site }\nspec: { directory: ./site-data, services: {} }\n'],
    ['operator.mjs', 'export const definitions = [];\nexport const controllers = [];\n'],
  ] as const)
    await place.write(name, text);
  await mkdir(place.path('folder'));
  await place.write('folder/shop.yaml', shop.replaceAll('./data', '../data'));
  return place;
}

/** Splits as a shell does, as far as the examples need it. */
const words = (line: string): readonly string[] =>
  [...line.matchAll(/(?:'[^']*'|[^\s'])+/g)].map(([word]) => word.replace(/'([^']*)'/g, '$1'));

let place: Workplace;
let up: Background;
let examples: readonly string[];

beforeAll(async () => {
  place = await workplace();
  const help = (await place.run(['--help'])).stdout;
  const commands = [...help.matchAll(/^ {2}([a-z-]+) /gm)].map((match) => match[1] as string);
  const texts = await Promise.all(commands.map(async (command) => (await place.run([command, '--help'])).stdout));
  examples = texts.flatMap((text) =>
    [...(text.split('Examples:\n')[1] ?? '').matchAll(/^ {2}steadystate (.*)$/gm)].map((match) => match[1] as string),
  );
  up = place.start(['up', 'shop.yaml']);
  await up.shows('ready: shop');
  expect((await place.run(['delete', 'stack', 'none'])).code).toBe(3);
}, 60_000);

afterAll(() => place[Symbol.asyncDispose]());

async function interrupted(where: Workplace, args: readonly string[], shows: RegExp): Promise<CliResult> {
  const child = where.start(args);
  await child.shows(shows);
  child.kill('SIGINT');
  return child.result;
}

test('each example does what it says', async () => {
  expect(examples.length).toBeGreaterThan(30);
  const variables = { EDITOR: 'true', VISUAL: '', TMPDIR: place.folder };
  // What takes things away comes last, and behind it what needs a store that nobody has open.
  const order = (example: string): number =>
    /^store (?:restore|repair)/.test(example) ? 3 : /^delete/.test(example) ? 2 : /^release-finalizer/.test(example) ? 1 : 0;
  for (const example of [...examples].sort((a, b) => order(a) - order(b))) {
    let args = words(example);
    if (args.includes('BOOKMARK')) {
      const { stdout } = await interrupted(place, ['watch', 'stacks', '-o', 'json'], /bootstrapped.*"bookmark"/);
      const bookmark = [...stdout.matchAll(/"bookmark":"([^"]+)"/g)].at(-1)?.[1] as string;
      args = args.map((word) => (word === 'BOOKMARK' ? bookmark : word));
      await place.run(['annotate', 'stack', 'shop', `at=${bookmark}`, '--overwrite']);
    }
    if (order(example) === 3) {
      up.kill('SIGINT');
      await up.result;
    }
    if (example.startsWith('delete')) await place.run(['apply', '-f', 'shop.yaml', '--wait']);
    if (example.startsWith('release-finalizer')) await withFinalizer(args);
    if (example.includes("restarts}'=1")) {
      const { stdout } = await place.run(['get', 'process', 'shop/api', '-o', 'jsonpath={.status.pid}']);
      process.kill(Number(stdout), 'SIGKILL');
    }
    const shows = lasting[example];
    let result: CliResult;
    if (alone.test(example)) {
      await using own = await workplace();
      await mkdir(own.path('run'), { mode: 0o700 });
      result = shows === undefined ? await own.run(args) : await interrupted(own, args, shows);
    } else if (shows !== undefined) result = await interrupted(place, args, shows);
    else result = await place.run(args, { variables, ...(args.at(-1) === '-' && { input: named('shop') }) });
    const expected = /^(?:diff|plan)\b/.test(example) ? [0, 6] : [0];
    expect({
      example,
      code: expected.includes(result.code as number),
      stderr: expected.includes(result.code as number) ? '' : result.stderr,
    }).toEqual({
      example,
      code: true,
      stderr: '',
    });
  }
}, 180_000);

/** Puts the finalizer there that an example takes away. */
async function withFinalizer([, type, id, finalizer]: readonly string[]): Promise<void> {
  const { stdout } = await place.run(['get', type as string, id as string, '-o', 'json']);
  const resource = JSON.parse(stdout) as { metadata: { finalizers?: string[]; version?: string } };
  resource.metadata.finalizers = [...(resource.metadata.finalizers ?? []), finalizer as string];
  delete resource.metadata.version;
  expect((await place.run(['apply', '-f', '-'], { input: JSON.stringify(resource) })).code).toBe(0);
}
