import { isAnyNamespace } from './any-namespace.ts';
import type { AnyController, Input, Output } from './controller.ts';
import { isQueueController } from './controller.ts';

export interface GraphInput extends Omit<Input, 'namespace'> {
  readonly namespace?: string;
}

/** Which controller reads and writes what. Plain data: as JSON it is the export for programs. */
export interface ControllerGraph {
  readonly controllers: readonly {
    readonly name: string;
    readonly kind: 'queue' | 'classic';
    /** Without a namespace: in any. */
    readonly inputs: readonly GraphInput[];
    readonly outputs: readonly Output[];
  }[];
}

export function graphOf(controllers: readonly AnyController[]): ControllerGraph {
  return {
    controllers: controllers.map((controller) => ({
      name: controller.name,
      kind: isQueueController(controller) ? 'queue' : 'classic',
      inputs: controller.inputs.map(({ namespace, type, id, kind }) => ({
        ...(!isAnyNamespace(namespace) && { namespace }),
        type,
        ...(id !== undefined && { id }),
        kind,
      })),
      outputs: controller.outputs.map(({ type, kind }) => ({ type, kind })),
    })),
  };
}

interface Edge {
  readonly from: string;
  readonly to: string;
  readonly label: string;
}

interface Drawing {
  /** Names by node; a controller and a type of one name are two nodes. */
  readonly controllers: ReadonlyMap<string, string>;
  readonly types: ReadonlyMap<string, string>;
  readonly edges: readonly Edge[];
}

function draw(graph: ControllerGraph): Drawing {
  const controllers = new Map<string, string>();
  const types = new Map<string, string>();
  const edges = new Map<string, Edge>();
  const nodeOf = (nodes: Map<string, string>, mark: string, name: string): string => {
    let node = [...nodes].find(([, other]) => other === name)?.[0];
    if (node === undefined) {
      node = `${mark}${nodes.size}`;
      nodes.set(node, name);
    }
    return node;
  };
  const connect = (from: string, to: string, label: string): void => void edges.set(JSON.stringify([from, to, label]), { from, to, label });
  for (const controller of graph.controllers) {
    const self = nodeOf(controllers, 'c', controller.name);
    for (const input of controller.inputs) {
      const namespace = input.namespace ?? 'any namespace';
      const where = input.id === undefined ? namespace : `${namespace}/${input.id}`;
      connect(nodeOf(types, 't', input.type), self, `${input.kind} (${where})`);
    }
    for (const output of controller.outputs) connect(self, nodeOf(types, 't', output.type), output.kind);
  }
  return { controllers, types, edges: [...edges.values()] };
}

/** Graphviz text: controllers are boxes, types are ellipses. */
export function graphToDot(graph: ControllerGraph): string {
  const { controllers, types, edges } = draw(graph);
  const lines = ['digraph controllers {', '  rankdir=LR;'];
  for (const [node, name] of controllers) lines.push(`  ${node} [label=${dotText(name)}, shape=box, style=filled];`);
  for (const [node, name] of types) lines.push(`  ${node} [label=${dotText(name)}];`);
  for (const { from, to, label } of edges) lines.push(`  ${from} -> ${to} [label=${dotText(label)}];`);
  return `${[...lines, '}'].join('\n')}\n`;
}

/** Mermaid text: controllers are boxes, types are round. */
export function graphToMermaid(graph: ControllerGraph): string {
  const { controllers, types, edges } = draw(graph);
  const lines = ['flowchart LR'];
  for (const [node, name] of controllers) lines.push(`  ${node}[${mermaidText(name)}]`);
  for (const [node, name] of types) lines.push(`  ${node}(${mermaidText(name)})`);
  for (const { from, to, label } of edges) lines.push(`  ${from} -->|${mermaidText(label)}| ${to}`);
  return `${lines.join('\n')}\n`;
}

/** Within double quotes Graphviz knows the quote and the backslash; a line of the text stays one line of the drawing's source. */
function dotText(text: string): string {
  return `"${text.replace(/["\\]/g, (character) => `\\${character}`).replace(/[\r\n]+/g, '\\n')}"`;
}

/** Within double quotes Mermaid knows character references only. */
function mermaidText(text: string): string {
  return `"${text.replace(/[#"<>&;\\\r\n]/g, (character) => `#${character.charCodeAt(0)};`)}"`;
}
