import type { Source, SyntaxNode } from './sources.ts';
import { isNode, place, walk } from './sources.ts';

export interface Import {
  /** What is imported; `undefined` when it is computed. */
  readonly specifier: string | undefined;
  /** The names taken by an import declaration; `*` for all of it, also by export and import(). */
  readonly names: readonly string[];
  /** Gone after compilation. */
  readonly typeOnly: boolean;
  readonly place: string;
}

/** Everything that a file imports: declarations, re-exports, import() and import types. */
export function importsOf(source: Source): readonly Import[] {
  const found: Import[] = [];
  const add = (node: SyntaxNode, names: readonly string[], typeOnly: boolean): void => {
    const literal = node.source;
    const specifier = isNode(literal) && typeof literal.value === 'string' ? literal.value : undefined;
    found.push({ specifier, names, typeOnly, place: place(source, node) });
  };
  walk(source.tree, (node) => {
    if (node.type === 'ImportDeclaration') {
      const specifiers = (node.specifiers as readonly SyntaxNode[]).map(importedName);
      add(node, specifiers, node.importKind === 'type');
    } else if ((node.type === 'ExportNamedDeclaration' || node.type === 'ExportAllDeclaration') && isNode(node.source)) {
      add(node, ['*'], node.exportKind === 'type');
    } else if (node.type === 'ImportExpression') {
      add(node, ['*'], false);
    } else if (node.type === 'TSImportType') {
      add(node, ['*'], true);
    }
    return true;
  });
  return found;
}

function importedName(specifier: SyntaxNode): string {
  if (specifier.type === 'ImportNamespaceSpecifier') return '*';
  if (specifier.type === 'ImportDefaultSpecifier') return 'default';
  const { imported } = specifier;
  return isNode(imported) ? String(imported.name ?? imported.value) : '*';
}
