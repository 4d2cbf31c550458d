import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Background } from './harness.ts';
import { Workplace } from './harness.ts';

const many = { namespace: 'default', type: 'Notes.example.dev' };

const notes = (count: number): string =>
  Array.from(
    { length: count },
    (_, n) => `---\nmetadata: { namespace: default, type: Notes.example.dev, id: n${n} }\nspec: { n: ${n} }\n`,
  ).join('');

describe('beside a running server', () => {
  let place: Workplace;
  let serve: Background;
  beforeAll(async () => {
    place = await Workplace.make();
    serve = place.start(['serve']);
    await serve.shows('serving sqlite:');
    await place.write('notes.yaml', notes(30));
    expect(await place.run(['apply', '-f', 'notes.yaml'])).toMatchObject({ code: 0 });
  });
  afterAll(() => place[Symbol.asyncDispose]());

  test('check, compact and backup work through it', async () => {
    const check = await place.run(['store', 'check']);
    expect(check).toMatchObject({ code: 0, stderr: '' });
    expect(check.stdout).toMatch(/^\d+ resources and \d+ events are intact; revision \d+, \d+ KiB, of that \d+ KiB free\n$/);
    const backup = await place.run(['store', 'backup', 'copy.db', '-o', 'json']);
    expect(backup).toMatchObject({ code: 0, stderr: '' });
    const { file, resources, revision } = JSON.parse(backup.stdout);
    expect(file).toBe(place.path('copy.db'));
    expect(resources).toBeGreaterThan(29);
    expect(await place.run(['store', 'backup', 'copy.db'])).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/exists already; .*--force/),
    });
    expect(await place.run(['store', 'backup', 'copy.db', '--force'])).toMatchObject({ code: 0 });
    expect(await place.run(['store', 'compact', '--keep', '5'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`dropped \\d+ events; bookmarks from before revision ${revision - 5} have expired`)),
    });
    expect(await place.run(['get', 'Notes.example.dev', '--store', 'sqlite:copy.db', '-o', 'name'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Notes.example.dev/n17\n'),
    });
  });

  test('what -o name prints before the slash is a type that commands take', async () => {
    const { stdout } = await place.run(['get', 'Notes.example.dev', '-o', 'name']);
    const [type = '', id = ''] = (stdout.split('\n')[0] as string).split('/');
    expect(await place.run(['get', type, id, '-o', 'name'])).toMatchObject({ code: 0, stdout: `${type}/${id}\n` });
    expect((await place.run(['wait', type, id, '--for', `jsonpath={.metadata.id}=${id}`])).code).toBe(0);
  });

  test('restore and repair are refused, and name who has it', async () => {
    await place.run(['store', 'backup', 'other.db', '--force']);
    for (const args of [
      ['restore', 'other.db'],
      ['repair'],
      ['restore', 'other.db', '--store', 'sqlite:.steadystate/state.db'],
      ['repair', '--store', 'sqlite:.steadystate/state.db'],
      ['check', '--store', 'sqlite:.steadystate/state.db'],
    ])
      expect(await place.run(['store', ...args])).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(new RegExp(`process ${serve.pid}`)),
      });
    expect(await place.run(['store', 'export', '.steadystate/state.db', '--force'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/is never replaced by an export/),
    });
    // Nobody's looking has cost the server its lock or its file.
    expect(await place.run(['store', 'check'])).toMatchObject({ code: 0 });
    expect(await place.run(['label', 'Notes.example.dev', 'n1', 'a=b'])).toMatchObject({ code: 0 });
  });

  test('a store in memory has nothing to look after', async () => {
    await using elsewhere = await Workplace.make();
    const server = elsewhere.start(['serve', '--store', 'memory:']);
    await server.shows('serving memory:');
    expect(await elsewhere.run(['store', 'check'])).toMatchObject({ code: 1, stderr: expect.stringMatching(/not kept in a file/) });
  });
});

describe('a file that nobody has open', () => {
  let place: Workplace;
  beforeEach(async () => {
    place = await Workplace.make();
    await place.write('notes.yaml', notes(20));
    expect(await place.run(['apply', '-f', 'notes.yaml', '--store', 'sqlite:state.db'])).toMatchObject({ code: 0 });
  });
  afterEach(() => place[Symbol.asyncDispose]());
  const store = (...args: string[]) => place.run(['store', ...args, '--store', 'sqlite:state.db']);

  test('damage is found, and repaired by name', async () => {
    expect(await store('repair')).toMatchObject({ code: 0, stdout: 'nothing is wrong with the store, and nothing was changed\n' });
    const bytes = readFileSync(place.path('state.db'));
    const at = bytes.indexOf('{"n":7}');
    bytes[at + 5] = 0x38;
    writeFileSync(place.path('state.db'), bytes);
    expect(await place.run(['get', 'Notes.example.dev', '--store', 'sqlite:state.db'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/damaged/),
    });
    expect(await store('check')).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^Notes\.example\.dev\/default\/n7: the record of uid \d+, version \d+, does not match its checksum\n/),
      stderr: expect.stringMatching(/1 thing is wrong with the store; restore a backup .*, or keep what is intact/),
    });
    const repair = await store('repair');
    expect(repair).toMatchObject({ code: 0, stderr: '' });
    expect(repair.stdout).toMatch(
      /Notes\.example\.dev\/default\/n7: dropped: .*\n\d+ resources are kept; the event log begins anew\nthe damaged file is kept as .*state\.db\.damaged-\d+\n/,
    );
    expect(await store('check')).toMatchObject({ code: 0 });
    expect(readdirSync(place.folder).filter((name) => name.includes('damaged'))).toHaveLength(1);
  });

  test('a backup is restored, into a new place too', async () => {
    expect(await store('backup', 'copy.db')).toMatchObject({ code: 0 });
    expect(await place.run(['delete', 'Notes.example.dev', 'n3', '--store', 'sqlite:state.db'])).toMatchObject({ code: 0 });
    const restore = await store('restore', 'copy.db');
    expect(restore).toMatchObject({ code: 0, stderr: '' });
    expect(restore.stdout).toMatch(
      /state\.db: \d+ resources; it goes on from revision \d{16}\nthe store that was there before is kept as .*replaced-\d+\n/,
    );
    expect(await place.run(['get', 'Notes.example.dev', 'n3', '--store', 'sqlite:state.db'])).toMatchObject({ code: 0 });
    expect(await place.run(['store', 'restore', 'copy.db'])).toMatchObject({ code: 0 });
    expect(await place.run(['get', 'Notes.example.dev', 'n3'])).toMatchObject({ code: 0 });
  });

  test('an export takes the place of text only, never of a database, of what belongs beside one, or of a device', async () => {
    expect(await store('backup', 'copy.db')).toMatchObject({ code: 0 });
    mkdirSync(place.path('folder'));
    symlinkSync('/dev/null', place.path('null'));
    for (const [name, message] of [
      ['state.db', /is the store itself/],
      ['state.db-wal', /belongs to one, and is never replaced/],
      ['copy.db', /is a store or another database/],
      ['copy.db-wal', /belongs to one/],
      ['folder', /is a folder; name a file in it/],
      ['null', /is a device or a pipe, and is never replaced/],
    ] as const)
      expect(await store('export', name, '--force')).toMatchObject({
        code: expect.toBeOneOf([1, 2]),
        stdout: '',
        stderr: expect.stringMatching(message),
      });
    expect(await store('backup', 'null', '--force')).toMatchObject({ code: 1, stderr: expect.stringMatching(/is a device or a pipe/) });
    expect(await store('backup', 'copy.db-wal', '--force')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/belongs to another store/),
    });
    for (const name of ['state.db', 'copy.db'])
      expect(await place.run(['store', 'check', '--store', `sqlite:${name}`])).toMatchObject({ code: 0 });
    expect(readdirSync(place.folder).sort()).toEqual(['copy.db', 'folder', 'notes.yaml', 'null', 'state.db']);
  });

  test('folders and devices are neither stores nor backups', async () => {
    expect(await store('export', 'all.jsonl')).toMatchObject({ code: 0 });
    mkdirSync(place.path('folder'));
    symlinkSync('/dev/null', place.path('null'));
    for (const [name, message] of [
      ['folder', /folder is a folder, and no file/],
      ['null', /is a device or a pipe, and no file/],
    ] as const) {
      const refused = { code: 1, stdout: '', stderr: expect.stringMatching(message) };
      expect(await store('restore', name)).toMatchObject(refused);
      const there = ['--store', `sqlite:${name}`];
      expect(await place.run(['get', 'Notes.example.dev', ...there])).toMatchObject(refused);
      expect(await place.run(['store', 'check', ...there])).toMatchObject(refused);
      expect(await place.run(['store', 'restore', 'state.db', ...there])).toMatchObject(refused);
    }
    expect(await place.run(['store', 'import', 'all.jsonl', '--store', 'sqlite:null'])).toMatchObject({ code: 1 });
    expect(readdirSync(place.folder).sort()).toEqual(['all.jsonl', 'folder', 'notes.yaml', 'null', 'state.db']);
  });

  test('a damaged backup is told once, and with what to do', async () => {
    await place.write('text.db', 'no database, but long enough to be looked at\n'.repeat(20));
    const { code, stderr } = await store('restore', 'text.db');
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^\S*text\.db is damaged: file: it is no database any more/),
    });
    expect(stderr.match(/damaged/g)).toHaveLength(1);
    expect(stderr).toContain('name another backup, or repair this one first');
  });

  test('--timeout ends a long work between two steps', async () => {
    await place.write(
      'many.jsonl',
      Array.from({ length: 20_000 }, (_, n) => JSON.stringify({ metadata: { ...many, id: `m${n}` }, spec: n })).join('\n'),
    );
    const late = { code: 5, stdout: '', stderr: expect.stringMatching(/: the time ran out/) };
    expect(await store('import', 'many.jsonl', '--timeout', '1ms')).toMatchObject(late);
    expect(await store('check', '--timeout', '0')).toMatchObject(late);
    expect(await store('backup', 'copy.db', '--timeout', '0')).toMatchObject(late);
    expect(await place.run(['get', many.type, 'm19999', '--store', 'sqlite:state.db'])).toMatchObject({ code: 3 });
    expect(readdirSync(place.folder).sort()).toEqual(['many.jsonl', 'notes.yaml', 'state.db']);
  });

  test('wrong use is told apart', async () => {
    for (const [args, message] of [
      [['sweep'], /expected one of check, repair, .*, found sweep/],
      [['backup'], /store backup needs a file/],
      [['check', 'x.db'], /store check takes no file/],
      [['check', '--force'], /--force does not belong to store check/],
      [['compact', '--keep', 'few'], /--keep: expected a number of events/],
      [['compact', '--older-than', 'long'], /--older-than: expected a duration/],
      [['check', '-o', 'yaml'], /prints table or json/],
    ] as const)
      expect(await store(...args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
    expect(await store('restore', 'none.db')).toMatchObject({ code: 3 });
    expect(await place.run(['store', 'check', '--store', 'sqlite:none.db'])).toMatchObject({ code: 3 });
    expect(await place.run(['store', 'check'])).toMatchObject({ code: 3 });
    expect(readdirSync(place.folder).sort()).toEqual(['notes.yaml', 'state.db']);
  });
});
