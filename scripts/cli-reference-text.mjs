// The reference of the command line, as text, from the built program.
import { buildProgram } from '../dist/cli/index.js';
import { nodeEnvironment } from '../dist/environment/index.js';

const intro = `# The command line

One binary, \`steadystate\` (\`npx steadystate\` in a checkout). Every command talks to the store that \`--store\` names; without it
to the server whose socket is \`.steadystate/api.sock\` in this folder, else it opens the store file that is there. A look never
makes a store.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed |
| 2 | wrong use |
| 3 | not found |
| 4 | conflict |
| 5 | timed out |
| 6 | differences |
| 130 | cut short by Ctrl-C |

Types can be written by their names or aliases, in any case: \`stack\`, \`Stacks\`, \`stacks.host.steadystate.dev\`; \`stack shop\` and
\`stack/shop\` are the same. Much that kubectl takes is taken, and of other options and commands it is said what stands for them. Two
things differ: a \`delete\` waits only with \`--wait\`, and a look goes to the namespace of the type unless \`-n\` names one. Durations are
written \`500ms\`, \`30s\`, \`5m\`. \`NO_COLOR\` and \`--no-color\` are honoured. Errors go to standard error.

Values of sensitive types are masked in every output. Two masks of one output, \`*** (a1b2c3)\`, are the same for the same value; those
of another run are others, so that nobody can find a value by trying. A mask is never written back.

Completion of commands, options, types, ids, services and files: \`source <(steadystate completion bash)\` (or \`zsh\`) in the file that
your shell reads at its start; \`steadystate completion fish | source\` for fish. It asks the store that the line names, for a second at most.

## Modules

\`serve\` and \`plan --module\` take modules of one's own (\`.js\`, \`.mjs\`; \`.ts\` where Node strips types). A module exports any of

| export | what |
|---|---|
| \`definitions\` | types, from \`defineResource\`: writes are checked by them, and they are listed by \`types\` |
| \`workloads\` | from \`defineWorkload\`: each gets a controller, and \`plan\` shows its children; their kinds need not be in \`definitions\` |
| \`controllers\` | queue controllers, or a function of \`{ environment, state }\` that answers them |
`;

export async function cliReference() {
  const lines = [intro];
  const io = {
    write: (text) => lines.push(text),
    draw() {},
    writeError() {},
    drawError() {},
    isTerminal: false,
    errorIsTerminal: false,
    columns: () => 80,
    rows: () => 0,
    color: false,
    caller: () => '',
    variables: {},
    directory: '.',
    storeDirectory: '.',
    readStandardInput: async () => '',
    openEditor: async () => 0,
    signal: new AbortController().signal,
  };
  const program = buildProgram(io, nodeEnvironment(), () => {});
  for (const command of program.commands.filter((each) => !each.name().startsWith('__'))) {
    command.configureHelp({ helpWidth: 100 });
    lines.push(`\n## ${command.name()}\n\n\`\`\`text\n`);
    command.outputHelp();
    lines.push('```\n');
  }
  return lines.join('');
}
