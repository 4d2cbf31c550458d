import { createRequire } from 'node:module';

let loaded: typeof import('yaml') | undefined;

/** The YAML library, loaded at the first text that needs it: most specs travel as JSON, and a look should cost little. */
export function yamlLibrary(): typeof import('yaml') {
  loaded ??= createRequire(import.meta.url)('yaml') as typeof import('yaml');
  return loaded;
}
