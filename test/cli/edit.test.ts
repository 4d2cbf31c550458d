import { readdir, readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { smallStack, Workplace } from './harness.ts';

let place: Workplace;

beforeAll(async () => {
  place = await Workplace.make();
  const serve = place.start(['serve']);
  await serve.shows('serving');
  await place.write('small.yaml', smallStack);
  expect((await place.run(['apply', '-f', 'small.yaml'])).code).toBe(0);
});

afterAll(() => place[Symbol.asyncDispose]());

/** Edits with a shell line that stands for a person: `$1` is the file. */
const edit = (line: string, id = 'small') =>
  place.run(['edit', 'stack', id], { variables: { EDITOR: `sh -c '${line}' editor`, VISUAL: '', TMPDIR: place.folder } });
const kept = async () => (await readdir(place.folder)).filter((name) => name.startsWith('steadystate-edit-'));
const labels = async () =>
  JSON.parse((await place.run(['get', 'stack', 'small', '-o', 'json'])).stdout).metadata.labels as Record<string, string> | undefined;

test('what was saved is written; the file goes', async () => {
  expect(await edit('sed -i "s/^  id: small/  id: small\\n  labels: { team: web }/" "$1"')).toMatchObject({
    code: 0,
    stdout: 'stacks/small edited\n',
    stderr: '',
  });
  expect(await labels()).toEqual({ team: 'web' });
  expect(await kept()).toEqual([]);
});

test('a label that was taken out goes', async () => {
  expect((await edit('sed -i "/labels:/d; /team: web/d" "$1"')).code).toBe(0);
  expect(await labels()).toBeUndefined();
});

test('closed without a change, or with one that says the same: nothing is written', async () => {
  const version = async () => (await place.run(['get', 'stack', 'small', '-o', 'jsonpath={.metadata.version}'])).stdout;
  const before = await version();
  expect(await edit('true')).toMatchObject({ code: 0, stdout: 'stacks/small unchanged\n' });
  expect(await edit('echo "# a comment" >> "$1"')).toMatchObject({ code: 0, stdout: 'stacks/small unchanged\n' });
  expect(await version()).toBe(before);
  expect(await kept()).toEqual([]);
});

test.each([
  ['broken YAML', 'echo "metadata: [" > "$1"', 1, /:\d+:\d+: /],
  ['an unknown field', 'echo "nope: 1" >> "$1"', 1, /nope: unknown field/],
  ['another id', 'sed -i "s/^  id: small/  id: large/" "$1"', 1, /namespace, type and id cannot be edited/],
  ['a spec that does not fit', 'sed -i "s/dependsOn:/dependson:/" "$1"', 1, /dependson/],
  ['an editor that failed', 'echo "# more" >> "$1"; exit 3', 1, /the editor ended with 3/],
])('%s: the text is kept, and said where', async (_name, line, code, message) => {
  const before = await kept();
  const result = await edit(line);
  expect(result).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(message) });
  const file = /your text is kept in (\S+);/.exec(result.stderr)?.[1] as string;
  expect(await kept()).toHaveLength(before.length + 1);
  expect(await readFile(file, 'utf8')).not.toBe('');
});

test('somebody else was faster: a conflict, and the text is kept', async () => {
  const other = `${process.execPath} ${new URL('../../dist/cli/main.js', import.meta.url).pathname} label stack small other=1`;
  const result = await edit(`${other} > /dev/null; sed -i "s/^  id: small/  id: small\\n  labels: { mine: yes-mine }/" "$1"`);
  expect(result).toMatchObject({ code: 4, stderr: expect.stringContaining('your text is kept in') });
  expect(await labels()).toEqual({ other: '1' });
  const file = /your text is kept in (\S+);/.exec(result.stderr)?.[1] as string;
  expect(await readFile(file, 'utf8')).toContain('mine: yes-mine');
  // It stays a conflict until the person looks at what is there.
  expect((await place.run(['apply', '-f', file])).code).toBe(4);
});

test('nothing to edit', async () => {
  expect((await edit('true', 'none')).code).toBe(3);
  expect(await place.run(['edit', 'stack', 'small'], { variables: { EDITOR: '', VISUAL: '' } })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('set EDITOR'),
  });
});

test('an editor that leaves nothing to write changes nothing, and leaves no file', async () => {
  const before = await kept();
  for (const [line, message] of [
    ['rm "$1"', /^the editor removed \S+; nothing was written\n$/],
    [': > "$1"', /^the text was emptied; nothing was written/],
  ] as const) {
    expect(await edit(line)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(message) });
    expect(await kept()).toEqual(before);
  }
});
