import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'vite';

/** The package's folder. */
export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** A node of the syntax tree, as far as the guards care. */
export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly [field: string]: unknown;
}

export interface Source {
  /** From the package's folder, with slashes: `src/queue/heap.ts`. */
  readonly path: string;
  readonly text: string;
  readonly tree: SyntaxNode;
}

/** Every TypeScript file below a folder of the package, parsed. */
export function sources(folder: string): readonly Source[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort()
    .map((path) => parseSource(path, readFileSync(join(root, path), 'utf8')));
}

export function parseSource(path: string, text: string): Source {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  return { path, text, tree: program as unknown as SyntaxNode };
}

/** Visits a tree in order; `visit` answers `false` to leave out what is below a node. */
export function walk(node: SyntaxNode, visit: (node: SyntaxNode) => boolean | undefined): void {
  if (visit(node) === false) return;
  for (const child of children(node)) walk(child, visit);
}

/** The nodes right below a node. */
export function children(node: SyntaxNode): readonly SyntaxNode[] {
  return Object.values(node).flatMap((value) => (Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : []));
}

export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
}

/** `src/queue/heap.ts:12`, to be clicked on. */
export function place(source: Source, node: SyntaxNode): string {
  return `${source.path}:${source.text.slice(0, node.start).split('\n').length}`;
}
