import { expect, test } from 'vitest';
import { expandPorts, portNames, portTextProblem } from './port-text.ts';

const port = (name: string): string => `\${port:${name}}`;
const literal = '$${';

test.each([
  ['plain', 'plain'],
  ['', ''],
  [port('api'), '8080'],
  [`http://127.0.0.1:${port('api')}/x?y=${port('db-2')}`, 'http://127.0.0.1:8080/x?y=5432'],
  [`${literal}HOME}`, '$' + '{HOME}'],
  [`${literal}port:api}`, port('api')],
  [`$${literal}x`, '$$' + '{x'],
  ['$ {port:api} $HOME $', '$ {port:api} $HOME $'],
  [`${port('api')}${port('api')}`, '80808080'],
])('%s becomes %s', (text, expected) => {
  expect(portTextProblem(text)).toBeUndefined();
  expect(expandPorts(text, { api: 8080, 'db-2': 5432 })).toBe(expected);
});

test.each(['$' + '{prot:api}', '$' + '{port:}', '$' + '{port:-x}', '$' + '{port:a b}', '$' + '{port:api', 'echo $' + '{HOME}', '$' + '{}'])(
  '%s is not understood, and the answer says what is',
  (text) => {
    expect(portTextProblem(text)).toMatch(/is not understood here; expected \$\{port:NAME\}, and \$\$\{ for a literal \$\{$/);
  },
);

test('ports are found in their order, and one without a number stays as it was written', () => {
  expect(portNames(`${port('b')} ${port('a')} ${literal}port:c}`)).toEqual(['b', 'a']);
  expect(expandPorts(`x${port('toString')}`, {})).toBe(`x${port('toString')}`);
});
