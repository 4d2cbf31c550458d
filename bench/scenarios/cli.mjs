// @ts-check
// What a look at a running server costs as a whole process, beside the bare start of Node.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { nodeEnvironment, registerDefinitions, wrapCore } from 'steadystate';
import { hostDefinitions } from 'steadystate/host';
import { memoryState } from 'steadystate/memory';
import { serveState } from 'steadystate/server';

const run = promisify(execFile);
const program = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const looks = 3;

export const scenarios = [
  {
    name: 'cli-get',
    ours: {
      name: 'steadystate get',
      async prepare() {
        const folder = mkdtempSync(join(tmpdir(), 'ss-bench-'));
        const environment = nodeEnvironment();
        const core = memoryState({ environment });
        await registerDefinitions(wrapCore(core, { environment }), hostDefinitions);
        const server = await serveState({
          state: core,
          environment,
          listen: ['unix:api.sock'],
          directory: folder,
          control: { version: '0', pid: process.pid, store: 'memory:' },
        });
        return { folder, core, server };
      },
      /** @param {any} context */
      async run({ folder }) {
        for (let look = 0; look < looks; look++) {
          const { stdout } = await run(process.execPath, [
            program,
            'get',
            'ResourceDefinitions.meta.cosi.dev',
            '-n',
            'meta',
            '-o',
            'name',
            '--store',
            `unix:${join(folder, 'api.sock')}`,
          ]);
          if (!stdout.includes('resourcedefinitions/stacks.host.steadystate.dev')) throw new Error(`unexpected output: ${stdout}`);
        }
        return looks;
      },
      /** @param {any} context */
      async clean({ folder, core, server }) {
        await server.stop();
        await core[Symbol.asyncDispose]();
        rmSync(folder, { recursive: true });
      },
    },
    peer: {
      name: "Node's bare start",
      async run() {
        for (let look = 0; look < looks; look++) await run(process.execPath, ['-e', '0']);
        return looks;
      },
    },
  },
];
