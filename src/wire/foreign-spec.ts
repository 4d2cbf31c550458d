import { Bytes, freezeSpec } from '../resource/index.ts';
import { parseYamlValue } from './yaml-parse.ts';
import { compactYaml } from './yaml-stringify.ts';

/** The key under which a spec of an unknown type keeps the forms in which it came. */
export const foreignKey = '$wire';

/** A spec of an unknown type, kept byte for byte. It is plain data, so it survives every store. */
export interface ForeignSpec {
  readonly [foreignKey]: { readonly proto: Bytes; readonly yaml: string };
}

export function isForeignSpec(spec: unknown): spec is ForeignSpec {
  if (typeof spec !== 'object' || spec === null || !Object.hasOwn(spec, foreignKey)) return false;
  const forms = (spec as ForeignSpec)[foreignKey];
  return typeof forms === 'object' && forms !== null && Bytes.is(forms.proto) && typeof forms.yaml === 'string';
}

/** The value of a spec that came without a definition: plain where its text form says all of it, else both forms as they are. */
export function fromForeign(protoSpec: Uint8Array, yamlSpec: string): unknown {
  if (protoSpec.length === 0) {
    const value = readCompact(yamlSpec);
    if (value !== undefined) return value;
  }
  return freezeSpec({ [foreignKey]: { proto: Bytes.from(protoSpec), yaml: yamlSpec } });
}

/** A value whose compact form is exactly this text; `undefined` when there is none. */
function readCompact(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  try {
    // A number that JSON rounds is no exact reading; the YAML reader gives a bigint.
    if (value !== undefined && compactYaml(value) === text) return hasForeignKey(value) ? undefined : freezeSpec(value);
    if (text === '') return undefined;
    const parsed = freezeSpec(parseYamlValue(text));
    return compactYaml(parsed) === text ? parsed : undefined;
  } catch {
    // Not plain data as we have it: its forms are kept as they came.
    return undefined;
  }
}

function hasForeignKey(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, foreignKey);
}

/** What a person sees of a spec: of a foreign one its text form, read. */
export function visibleSpec(spec: unknown): unknown {
  if (!isForeignSpec(spec)) return spec;
  const { yaml, proto } = spec[foreignKey];
  if (yaml === '') return { proto };
  try {
    return parseYamlValue(yaml);
  } catch {
    return yaml;
  }
}
