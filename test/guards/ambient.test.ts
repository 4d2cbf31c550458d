import { describe, expect, test } from 'vitest';
import { ambientGlobals, mayBeAmbient, pureCrypto, pureModules, roomOf, rooms } from '../../scripts/rooms.mjs';
import { importsOf } from './imports.ts';
import type { Source, SyntaxNode } from './sources.ts';
import { children, isNode, parseSource, place, sources, walk } from './sources.ts';

/**
 * Uses of the clock, of chance and of the outside world, one line each. By name, not by what a name is bound to:
 * `const M = Math` is a use too, since nobody could follow M. A name that the file itself declares is its own.
 */
function ambientUses(source: Source): readonly string[] {
  const room = roomOf(source.path.slice('src/'.length)) ?? '.';
  const own = declaredNames(source.tree);
  const allowed = new Set([...own, ...(rooms[room]?.globals ?? [])]);
  const found: string[] = [];
  walkExpressions(source.tree, (node, parent) => {
    const name = node.name as string;
    if (allowed.has(name) || isPure(name, node, parent)) return;
    if (ambientGlobals.includes(name) || ['Date', 'Math', 'AbortSignal'].includes(name)) found.push(`${place(source, node)} uses ${name}`);
  });
  for (const { specifier, names, typeOnly, place } of importsOf(source)) {
    if (typeOnly || specifier === undefined || !specifier.startsWith('node:')) continue;
    if (pureModules.includes(specifier) || rooms[room]?.modules?.includes(specifier)) continue;
    if (specifier === 'node:crypto' && names.every((name) => pureCrypto.includes(name))) continue;
    found.push(`${place} imports ${specifier}`);
  }
  return found;
}

/** Date, Math and AbortSignal have pure parts too. */
function isPure(name: string, node: SyntaxNode, parent: SyntaxNode): boolean {
  const { property, computed } = parent;
  const member =
    parent.type === 'MemberExpression' && parent.object === node && computed === false && isNode(property) ? property.name : undefined;
  const isInstanceOf = parent.type === 'BinaryExpression' && parent.operator === 'instanceof' && parent.right === node;
  if (name === 'Math') return member !== undefined && member !== 'random';
  if (name === 'Date') {
    const isOfGivenTime = parent.type === 'NewExpression' && parent.callee === node && (parent.arguments as readonly unknown[]).length > 0;
    return isInstanceOf || isOfGivenTime || member === 'parse' || member === 'UTC';
  }
  if (name === 'AbortSignal') return isInstanceOf || member === 'abort';
  return false;
}

/** Visits every identifier that stands for a value, with the node above it. Types are left out: they are gone at run time. */
function walkExpressions(node: SyntaxNode, visit: (node: SyntaxNode, parent: SyntaxNode) => void): void {
  for (const child of children(node)) {
    if (child.type.startsWith('TS')) {
      if (isNode(child.expression)) walkExpressions({ type: 'Expression', start: child.start, expression: child.expression }, visit);
      continue;
    }
    if (child.type !== 'Identifier') walkExpressions(child, visit);
    else if (!isLabel(child, node)) visit(child, node);
  }
}

/** The name of a property, not of a value. */
function isLabel(node: SyntaxNode, parent: SyntaxNode): boolean {
  if (parent.type === 'MemberExpression') return parent.property === node && parent.computed === false;
  if (['MethodDefinition', 'PropertyDefinition', 'AccessorProperty'].includes(parent.type))
    return parent.key === node && parent.computed === false;
  if (parent.type === 'Property') return parent.key === node && parent.computed === false && parent.value !== node;
  return parent.type.startsWith('Import') || parent.type === 'ExportSpecifier' || parent.type === 'MetaProperty';
}

/** The names that a file binds, anywhere in it. Shadowing a global is left to the linter, which knows scopes. */
function declaredNames(tree: SyntaxNode): ReadonlySet<string> {
  const names = new Set<string>();
  const bind = (pattern: unknown): void => {
    if (!isNode(pattern)) return;
    if (pattern.type === 'Identifier') names.add(pattern.name as string);
    else if (pattern.type === 'AssignmentPattern') bind(pattern.left);
    else if (pattern.type === 'RestElement') bind(pattern.argument);
    else if (pattern.type === 'Property') bind(pattern.value);
    else for (const child of children(pattern)) bind(child);
  };
  walk(tree, (node) => {
    if (node.type === 'VariableDeclarator') bind(node.id);
    if (node.type === 'CatchClause') bind(node.param);
    if (Array.isArray(node.params)) for (const parameter of node.params) bind(parameter);
    if (node.type === 'FunctionDeclaration' || node.type === 'ClassDeclaration') bind(node.id);
    if (node.type.startsWith('Import') && isNode(node.local)) bind(node.local);
    return true;
  });
  return names;
}

function isGuarded({ path }: Source): boolean {
  return !path.endsWith('.test.ts') && !mayBeAmbient(path);
}

describe('the clock, chance and the outside world', () => {
  test('come in through the Environment only', () => {
    expect(sources('src').filter(isGuarded).flatMap(ambientUses)).toEqual([]);
  });

  test('are found under other names', () => {
    const bad = [
      'Date.now();',
      'new Date();',
      'Date();',
      'const D = Date;',
      'Math.random();',
      "Math['random']();",
      'const M = Math; M.random();',
      'const { random } = Math;',
      'globalThis.setTimeout(() => {}, 1);',
      "globalThis['Da' + 'te'];",
      'later(setTimeout);',
      'const timers = { setTimeout };',
      'AbortSignal.timeout(5);',
      'AbortSignal.any([]);',
      'const A = AbortSignal;',
      'process.nextTick(() => {});',
      '(performance as unknown as Clock).now();',
      'performance!.now();',
      'new WeakRef({});',
      'await fetch(url);',
      'crypto.randomUUID();',
      "import { randomBytes } from 'node:crypto';",
      "import { setTimeout } from 'node:timers/promises';",
      "import * as fs from 'node:fs';",
      "export { spawn } from 'node:child_process';",
      "const net = await import('node:net');",
      'class C { x = setImmediate; }',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text.
      'const text = `${Date.now()}`;',
    ];
    for (const line of bad) expect(ambientUses(parseSource('src/queue/made-up.ts', line)), line).toHaveLength(1);
  });

  test('leave their pure parts to everybody', () => {
    const good = [
      'Math.max(1, 2);',
      'new Date(5).toISOString();',
      'Date.parse(text);',
      'value instanceof Date;',
      'signal instanceof AbortSignal;',
      'const when: Date = given;',
      'const fetch = (): void => {}; fetch();',
      'environment.processes.run({ process: 1 });',
      'queueMicrotask(() => {});',
      "import { createHash } from 'node:crypto';",
      "import type { Socket } from 'node:net';",
      "import { addAbortListener } from 'node:events';",
    ];
    for (const line of good) expect(ambientUses(parseSource('src/queue/made-up.ts', line)), line).toEqual([]);
  });

  test('the program ends in one place', () => {
    const ends = sources('src')
      .filter(isGuarded)
      .filter(({ path }) => path !== 'src/cli/main.ts')
      .filter(({ text }) => /\bprocess\s*(\.\s*(exit|reallyExit|abort|kill)\b|\[)/.test(text));
    expect(ends.map(({ path }) => path)).toEqual([]);
  });
});
