/** What may follow `${port:`. */
const portName = /^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?$/;

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'port'; readonly name: string }
  | { readonly kind: 'wrong'; readonly text: string };

/** Splits text into what stays and what stands for a port. `$${` is a literal `${`. */
function split(text: string): readonly Part[] {
  const parts: Part[] = [];
  let plain = '';
  let index = 0;
  while (index < text.length) {
    if (text.startsWith('$${', index)) {
      plain += '${';
      index += 3;
    } else if (text.startsWith('${', index)) {
      const end = text.indexOf('}', index);
      const whole = end < 0 ? text.slice(index) : text.slice(index, end + 1);
      const name = whole.slice('${port:'.length, -1);
      const isPort = end >= 0 && whole.startsWith('${port:') && portName.test(name);
      parts.push({ kind: 'text', text: plain }, isPort ? { kind: 'port', name } : { kind: 'wrong', text: whole });
      plain = '';
      index += whole.length;
    } else plain += text[index++];
  }
  parts.push({ kind: 'text', text: plain });
  return parts;
}

/** The names of the ports that a text mentions, in their order. */
export function portNames(text: string): readonly string[] {
  return split(text).flatMap((part) => (part.kind === 'port' ? [part.name] : []));
}

/** What is wrong with a text in which ports are understood; `undefined`: nothing. */
export function portTextProblem(text: string): string | undefined {
  const wrong = split(text).find((part) => part.kind === 'wrong');
  if (wrong === undefined) return undefined;
  return `${wrong.text} is not understood here; expected \${port:NAME}, and $\${ for a literal \${`;
}

/** Puts ports in their places. A port that has no number yet stays as it was written. */
export function expandPorts(text: string, ports: Readonly<Record<string, number>>): string {
  return split(text)
    .map((part) => {
      if (part.kind !== 'port') return part.text;
      const port = Object.hasOwn(ports, part.name) ? ports[part.name] : undefined;
      return port === undefined ? `\${port:${part.name}}` : String(port);
    })
    .join('');
}
