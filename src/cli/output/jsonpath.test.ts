import { describe, expect, test } from 'vitest';
import { Bytes } from '../../resource/index.ts';
import { UsageError } from '../exit-codes.ts';
import { compileJsonPath, compilePath } from './jsonpath.ts';

const shop = {
  items: [
    { metadata: { id: 'api', labels: { 'app.dev/tier': 'front' } }, spec: { port: 80, ready: true, tags: ['a', 'b', 'c', 'd', 'e'] } },
    { metadata: { id: 'db', labels: {} }, spec: { port: 5432, ready: false, tags: [], big: 9_007_199_254_740_993n, none: null } },
  ],
};

test.each([
  ['{.items[*].metadata.id}', 'api db'],
  ['.items[*].metadata.id', 'api db'],
  ['items[*].metadata.id', 'api db'],
  ['{$.items[0].metadata.id}', 'api'],
  ['{@.items[0].metadata.id}', 'api'],
  ['{.items[-1].metadata.id}', 'db'],
  ['{.items[0].metadata["id"]}', 'api'],
  ["{.items[0].metadata.labels['app.dev/tier']}", 'front'],
  ['{.items[0].metadata.labels.app\\.dev/tier}', 'front'],
  ["{.items[0]['metadata', 'spec']['id', 'port']}", 'api 80'],
  ['{.items[0].spec.tags[1:3]}', 'b c'],
  ['{.items[0].spec.tags[:2]}', 'a b'],
  ['{.items[0].spec.tags[-2:]}', 'd e'],
  ['{.items[0].spec.tags[::2]}', 'a c e'],
  ['{.items[0].spec.tags[1,3]}', 'b d'],
  ['{.items[0].spec.tags}', '["a","b","c","d","e"]'],
  ['{..id}', 'api db'],
  ['{.items[*]..port}', '80 5432'],
  ['{.items[?(@.metadata.id=="db")].spec.port}', '5432'],
  ["{.items[?(@.metadata.id != 'db')].spec.port}", '80'],
  ['{.items[?(@.spec.port<100)].metadata.id}', 'api'],
  ['{.items[?(@.spec.port >= 80)].metadata.id}', 'api db'],
  ['{.items[?(@.spec.ready==true)].metadata.id}', 'api'],
  ['{.items[?(@.spec.big > 1)].metadata.id}', 'db'],
  // As in the documentation of kubectl.
  ["{.items[*]['metadata.id', 'spec.port']}", 'api db 80 5432'],
  ["{.items[0]['metadata', 'spec']['id', 'port']}", 'api 80'],
  ["{.items[0].metadata.labels['app\\.dev/tier']}", 'front'],
  ["{.items[0]['metadata.labels']}", '{"app.dev/tier":"front"}'],
  ["{['items'][0]['metadata']['id']}", 'api'],
  ['{.items[-1:].metadata.id}', 'db'],
  ['{.items[-2:-1].metadata.id}', 'api'],
  ['{.items[0].spec.tags[-1]}', 'e'],
  ['{.items[0].spec.tags[-9]}', ''],
  ['{.items[0].spec.tags[1:4:2]}', 'b d'],
  ['{.items[0].spec.tags[0,-1]}', 'a e'],
  ['{.items[0].spec.tags[9:]}', ''],
  ['{.items..port}', '80 5432'],
  ['{..metadata.id}', 'api db'],
  ['{..labels}', '{"app.dev/tier":"front"} {}'],
  ['{.items[0].*}', '{"id":"api","labels":{"app.dev/tier":"front"}} {"port":80,"ready":true,"tags":["a","b","c","d","e"]}'],
  ['{.items[?(@.metadata.labels["app.dev/tier"]=="front")].metadata.id}', 'api'],
  ["{.items[?(@.metadata.labels.app\\.dev/tier=='front')].metadata.id}", 'api'],
  ['{.items[?( @.spec.port == 80 )].metadata.id}', 'api'],
  ['{.items[?(@.spec.tags[0]=="a")].metadata.id}', 'api'],
  ['{.items[?(@.spec.big==9007199254740993)].metadata.id}', 'db'],
  ['{.items[?(@.spec.big==9007199254740992)].metadata.id}', ''],
  ['{.items[?(@.spec.port=="80")].metadata.id}', ''],
  ['{.items[?(80==@.spec.port)].metadata.id}', 'api'],
  ['{.items[*].spec.tags[?(@>"c")]}', 'd e'],
  ['{range .items[?(@.spec.port>79)]}[{.metadata.id}, {.spec.port}] {end}', '[api, 80] [db, 5432] '],
  ["{range .items[*]}{@.metadata.id}{'\\t'}{end}{.items[0].spec.port}", 'api\tdb\t80'],
  ['{range .items[*]}{"[\\"}\\n"}{end}', '["}\n["}\n'],
  ['{ range .items[*] }{ .metadata.id }{ end }', 'apidb'],
  ['{range .items[*].spec.tags[0:2]}{@}{end}', 'ab'],
  // Alone, a path asks whether something is there: false and null are.
  ['{.items[?(@.spec.ready)].metadata.id}', 'api db'],
  ['{.items[?(@.spec.none)].metadata.id}', 'db'],
  ['{.items[?(@.spec.nowhere)].metadata.id}', ''],
  ['{range .items[*]}{.metadata.id}{"\\t"}{.spec.port}{"\\n"}{end}', 'api\t80\ndb\t5432\n'],
  ['{range .items[*]}{range .spec.tags[*]}{@}-{end};{end}', 'a-b-c-d-e-;;'],
  ["ids: {.items[*].metadata.id}{'!'}", 'ids: api db!'],
  ['{.items[1].spec.big}', '9007199254740993'],
  ['{.items[1].spec}', '{"port":5432,"ready":false,"tags":[],"big":9007199254740993,"none":null}'],
  ['{.nowhere.at.all}', ''],
  ['{.items[9].metadata}', ''],
])('%s', (template, expected) => {
  expect(compileJsonPath(template)(shop)).toBe(expected);
});

test.each([
  ['{.items[*}', /expected ]/],
  ['{.items', /expected }/],
  ['{range .items[*]}{.a}', /\{range\} without \{end\}/],
  ['{end}', /\{end\} without \{range\}/],
  ['{.items[?(@.a =~ "x")]}', /expected \)/],
  ['{.items[x]}', /expected an index/],
  ['{"open}', /a quote is not closed/],
  ['{.a..}', /expected a field name/],
])('%s is refused, with the place', (template, message) => {
  expect(() => compileJsonPath(template)).toThrow(UsageError);
  expect(() => compileJsonPath(template)).toThrow(message);
  expect(() => compileJsonPath(template)).toThrow(/at character \d+/);
});

describe('one path', () => {
  test('gives values as they are', () => {
    expect(compilePath('{.items[*].spec.ready}')(shop)).toEqual([true, false]);
    expect(compilePath('.items[5]')(shop)).toEqual([]);
  });

  test('is one path only', () => {
    expect(() => compilePath('{.a}{.b}')).toThrow(/expected one JSONPath/);
    expect(() => compilePath('text {.a}')).toThrow(/expected one JSONPath/);
  });

  test('inherited names lead nowhere', () => {
    expect(compilePath('.constructor')({})).toEqual([]);
    expect(compilePath('.__proto__')({})).toEqual([]);
    expect(compilePath('.length')({ bytes: [] })).toEqual([]);
  });

  test('bytes are text, and not looked into', () => {
    const value = { bytes: Bytes.from(new Uint8Array([1, 2, 3])) };
    expect(compileJsonPath('{.bytes}')(value)).toBe('AQID');
    expect(compilePath('.bytes.length')(value)).toEqual([]);
  });
});
