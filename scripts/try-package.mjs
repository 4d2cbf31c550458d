// Packs the package, installs it as a user would, without install scripts, and tries it with a given Node:
//   node scripts/try-package.mjs [NODE]
// Every subpath loads, the program answers, and the example comes up and goes down. Prints what was tried; ends with 1 on a failure.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const node = resolve(process.argv[2] ?? process.execPath);
/** Largest tarball, bytes: somebody notices before a folder slips in. */
const largest = 2_000_000;
const expected =
  /^(?:package\.json|README\.md|LICENSE|CONTRIBUTING\.md|dist\/|docs\/|examples\/(?:README\.md|host\/shop\.yaml|operator\/))/;

const folder = mkdtempSync(join(tmpdir(), 'ss-pack-'));
const run = (command, args, cwd = folder) => execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
const check = (what, holds) => {
  if (!holds) throw new Error(what);
  console.log(`ok: ${what}`);
};

try {
  const [packed] = JSON.parse(run('npm', ['pack', '--json', '--silent', '--pack-destination', folder], root));
  const strange = packed.files.map(({ path }) => path).filter((path) => !expected.test(path) || /\.test\./.test(path));
  check(
    `the package holds what it should${strange.length > 0 ? `, but also ${strange.slice(0, 5).join(', ')}` : ''}`,
    strange.length === 0,
  );
  check(`the package has ${packed.size} bytes, at most ${largest}`, packed.size <= largest);

  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--silent', join(folder, packed.filename)]);
  const installed = join(folder, 'node_modules', 'steadystate');
  const { exports, peerDependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
  const load = (paths, what) => {
    writeFileSync(join(folder, 'all.mjs'), paths.map((path) => `await import('steadystate${path.slice(1)}');`).join('\n'));
    run(node, ['all.mjs']);
    check(`${paths.length} ${what}`, true);
  };
  const subpaths = Object.keys(exports).filter((path) => !path.endsWith('.json'));
  // Adapters are for who has the library that they adapt to.
  const adapters = subpaths.filter((path) => exports[path].default.includes('/adapters/'));
  load(
    subpaths.filter((path) => !adapters.includes(path)),
    'subpaths load',
  );

  const program = join(installed, 'dist', 'cli', 'main.js');
  check('the program tells its version', /^steadystate \d/.test(run(node, [program, 'version'])));
  const up = spawn(node, [program, 'up'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  await new Promise((done, failed) => {
    up.stdout.on('data', (chunk) => {
      output += chunk;
      if (output.includes('to start over')) done();
    });
    up.on('exit', () => failed(new Error(`up ended too early:\n${output}`)));
  });
  check('the example is ready', output.includes('ready: shop'));
  check(
    'its processes run',
    run(node, [program, 'get', 'processes', '-o', 'jsonpath={.items[*].status.state}'])
      .split(' ')
      .every((state) => state === 'Running'),
  );
  run(node, [program, 'delete', 'stack', 'shop', '--wait']);
  check('nothing is left of it', run(node, [program, 'get', 'processes', '-o', 'name']) === '');
  const ended = new Promise((done) => up.removeAllListeners('exit').on('exit', done));
  up.kill('SIGINT');
  check('the program ends well', (await ended) === 0);

  const peers = Object.entries(peerDependencies).map(([name, range]) => `${name}@${range}`);
  run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--silent', ...peers]);
  load(adapters, 'adapters load beside their libraries');
} catch (error) {
  console.error(`FAILED: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
