// Writes docs/cli.md from the commands of the built program: `node scripts/cli-reference.mjs`. A test compares.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { cliReference } from './cli-reference-text.mjs';

writeFileSync(fileURLToPath(new URL('../docs/cli.md', import.meta.url)), await cliReference());
