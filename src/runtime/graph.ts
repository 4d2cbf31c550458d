import type { Input, Output, QueueController } from './controller.ts';

/** Which controller reads and writes what. */
export interface ControllerGraph {
  readonly controllers: readonly { readonly name: string; readonly inputs: readonly Input[]; readonly outputs: readonly Output[] }[];
}

export function graphOf(controllers: readonly Pick<QueueController, 'name' | 'inputs' | 'outputs'>[]): ControllerGraph {
  return { controllers: controllers.map(({ name, inputs, outputs }) => ({ name, inputs, outputs })) };
}

/** Graphviz text. */
export function graphToDot(graph: ControllerGraph): string {
  const lines = ['digraph controllers {', '  rankdir=LR;'];
  for (const controller of graph.controllers) {
    lines.push(`  ${quote(controller.name)} [shape=box, style=filled];`);
    for (const input of controller.inputs) lines.push(`  ${quote(input.type)} -> ${quote(controller.name)} [label=${quote(input.kind)}];`);
    for (const output of controller.outputs)
      lines.push(`  ${quote(controller.name)} -> ${quote(output.type)} [label=${quote(output.kind)}];`);
  }
  return `${[...new Set(lines), '}'].join('\n')}\n`;
}

/** Mermaid text. */
export function graphToMermaid(graph: ControllerGraph): string {
  const ids = new Map<string, string>();
  const lines = ['flowchart LR'];
  const node = (name: string, open: string, close: string): string => {
    let id = ids.get(name);
    if (id === undefined) {
      id = `n${ids.size}`;
      ids.set(name, id);
      lines.push(`  ${id}${open}${quote(name)}${close}`);
    }
    return id;
  };
  for (const controller of graph.controllers) {
    const self = node(controller.name, '[', ']');
    for (const input of controller.inputs) lines.push(`  ${node(input.type, '(', ')')} -->|${input.kind}| ${self}`);
    for (const output of controller.outputs) lines.push(`  ${self} -->|${output.kind}| ${node(output.type, '(', ')')}`);
  }
  return `${lines.join('\n')}\n`;
}

function quote(text: string): string {
  return JSON.stringify(text);
}
