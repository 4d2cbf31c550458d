import { visibleText } from '../../resource/index.ts';
import type { ControllerGraph } from '../../runtime/index.ts';
import { graphToDot, graphToMermaid } from '../../runtime/index.ts';
import type { InventoryEntry } from '../../workload/index.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { ExitError, exitCodes, UsageError } from '../exit-codes.ts';
import { companionsOf } from '../joined.ts';
import { jsonText } from '../output/format.ts';
import type { Session } from '../session.ts';
import { TypesLookup } from '../types-lookup.ts';

/** `graph [-o dot|mermaid|json] [--resources]` */
export async function graphCommand(context: CommandContext, options: { readonly resources?: boolean }): Promise<number> {
  const format = context.options.output ?? 'mermaid';
  if (format !== 'dot' && format !== 'mermaid' && format !== 'json')
    throw new UsageError(`unknown output ${format}; expected dot, mermaid or json`);
  return withSession(context, async (session) => {
    context.io.write(
      options.resources === true ? edgesText(await resourceEdges(session, context), format) : await controllersText(session, format),
    );
    return exitCodes.ok;
  });
}

async function controllersText(session: Session, format: 'dot' | 'mermaid' | 'json'): Promise<string> {
  if (session.control === undefined)
    throw new ExitError(
      exitCodes.failed,
      'no server answers here, so no controllers run; see what there is with: steadystate graph --resources',
    );
  const graph = JSON.parse(await session.control.graph()) as ControllerGraph;
  if (format === 'json') return `${jsonText(graph)}\n`;
  return format === 'dot' ? graphToDot(graph) : graphToMermaid(graph);
}

interface Edge {
  readonly parent: string;
  readonly child: string;
  readonly ready: boolean;
}

/** Workloads and their children, by the inventories of all types that have a status. */
async function resourceEdges(session: Session, context: CommandContext): Promise<readonly Edge[]> {
  const types = await TypesLookup.read(session.state, context.environment);
  const edges: Edge[] = [];
  for (const definition of types.all) {
    const kind = { namespace: context.options.namespace ?? definition.defaultNamespace, type: definition.resourceType };
    for (const [id, companion] of await companionsOf(session.state, types, kind)) {
      const children = (companion.spec as { readonly children?: readonly InventoryEntry[] } | null)?.children;
      if (!Array.isArray(children)) continue;
      for (const child of children as readonly InventoryEntry[])
        edges.push({ parent: `${definition.displayType}/${id}`, child: `${child.kind}/${child.name}`, ready: child.ready });
    }
  }
  return edges;
}

function edgesText(edges: readonly Edge[], format: 'dot' | 'mermaid' | 'json'): string {
  if (format === 'json') return `${jsonText({ edges })}\n`;
  const quote = (text: string): string => JSON.stringify(visibleText(text));
  if (format === 'dot')
    return `digraph resources {\n  rankdir=LR;\n${edges.map(({ parent, child, ready }) => `  ${quote(parent)} -> ${quote(child)}${ready ? '' : ' [style=dashed]'};\n`).join('')}}\n`;
  const ids = new Map<string, string>();
  const node = (name: string): string => {
    const known = ids.get(name);
    if (known !== undefined) return known;
    const id = `n${ids.size}`;
    ids.set(name, id);
    return `${id}["${visibleText(name).replaceAll('"', '#quot;')}"]`;
  };
  return `flowchart LR\n${edges.map(({ parent, child, ready }) => `  ${node(parent)} ${ready ? '-->' : '-.->'} ${node(child)}\n`).join('')}`;
}
