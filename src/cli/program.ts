import { Command, CommanderError, Option } from 'commander';
import type { Environment } from '../environment/index.ts';
import { errorText, visibleLines } from './advice.ts';
import type { CommandContext, GlobalOptions } from './context.ts';
import { checkGlobalOptions, withinTimeout } from './context.ts';
import { ExitError, exitCodeOf, exitCodes, UsageError } from './exit-codes.ts';
import { habitHint, readHabits } from './habits.ts';
import type { CliIo } from './io.ts';
import { programVersion } from './version.ts';

/** Commands that go on by design, or say themselves what was not reached in time. */
const ownTimeouts: ReadonlySet<string> = new Set(['up', 'serve', 'apply', 'delete', 'wait', 'edit', 'store', '__complete']);

/** Whether a command prints what happens until somebody ends it. */
function goesOn(command: Command): boolean {
  const { watch, follow } = command.opts<{ readonly watch?: boolean; readonly follow?: boolean }>();
  return command.name() === 'watch' || watch === true || follow === true;
}

/** Gathers an option that may be given several times. */
const several = (value: string, before: readonly string[]): readonly string[] => [...before, value];

/**
 * Runs one command line (without program and script) and answers its exit code. Nothing here ends the process. Each command is
 * loaded when it runs, so that a look costs little more than Node's own start.
 */
export async function runCli(argv: readonly string[], outside: CliIo, environment: Environment): Promise<number> {
  // Names and messages come from anywhere, and all of them may get into an error.
  const io: CliIo = {
    ...outside,
    writeError: (text) => outside.writeError(visibleLines(text)),
    // In a pipe it is data, and its escapes too; people see what each command has made visible, and on a terminal nothing else.
    write: outside.isTerminal ? (text) => outside.write(visibleLines(text)) : outside.write,
  };
  let exitCode: number = exitCodes.ok;
  const program = buildProgram(io, environment, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync([...readHabits(argv, program)], { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    // A reader that has gone is a quiet end; what Ctrl-C has cut short was not done.
    if (io.signal.aborted && !(error instanceof ExitError))
      return io.signal.reason instanceof ExitError ? exitCodeOf(io.signal.reason) : exitCodes.ok;
    io.writeError(errorText(error));
    return exitCodeOf(error);
  }
}

/** The commands, as commander has them; also what the reference page is made from. */
export function buildProgram(io: CliIo, environment: Environment, done: (exitCode: number) => void): Command {
  const program = new Command('steadystate');
  const printed = {
    writeOut: (text: string) => io.write(text),
    writeErr: (text: string) => io.writeError(text),
  };
  /** What commander says of a wrong word, and what stands for it here, where that is known. */
  const printedFor = (name: string) => ({
    ...printed,
    outputError: (text: string, write: (text: string) => void): void => {
      const hint = habitHint(name, text);
      // What is meant is known then: a word that only looks like it does not help.
      write(hint === undefined ? text : `${text.split('\n', 1)[0]}\n${hint}\n`);
    },
  });
  program
    .description('Declared resources, and the controllers that keep them.')
    .version(programVersion, '-V, --version', 'show the version')
    .exitOverride()
    .configureOutput(printedFor(''))
    .showSuggestionAfterError()
    .showHelpAfterError('see: steadystate --help')
    .helpCommand(false);

  const command = (text: string, description: string, examples: readonly string[]): Command => {
    const added = program.command(text).description(description);
    added
      .addOption(new Option('--store <url>', 'the store: unix:PATH, sqlite:PATH, grpc://HOST:PORT, memory:'))
      .addOption(new Option('-n, --namespace <name>', 'the namespace (default: that of the type)'))
      .addOption(new Option('--timeout <duration>', 'how long to wait, such as 30s or 5m'))
      .addOption(new Option('--no-color', 'without colours'))
      .exitOverride()
      .configureOutput(printedFor(added.name()))
      .showHelpAfterError(`see: steadystate ${added.name()} --help`)
      .addHelpText('after', `\nExamples:\n${examples.map((example) => `  steadystate ${example}\n`).join('')}`);
    return added;
  };
  const output = new Option('-o, --output <format>', 'table, wide, yaml, json, name or jsonpath=TEMPLATE');
  const run =
    <Arguments extends readonly unknown[]>(start: (context: CommandContext, ...rest: Arguments) => Promise<number>) =>
    async (...given: unknown[]): Promise<void> => {
      const own = given.pop() as Command;
      const options = own.opts<GlobalOptions>();
      const rest = given.slice(0, -1);
      try {
        const context = { io, environment, options };
        checkGlobalOptions(context);
        using _reader = goesOn(own) ? io.watchReader?.() : undefined;
        const work = () => start(context, ...([...rest, options] as unknown as Arguments));
        done(await (ownTimeouts.has(own.name()) ? work() : withinTimeout(context, work)));
      } catch (error) {
        if (error instanceof UsageError) error.command ??= own.name();
        throw error;
      }
    };

  command('up [files...]', 'serve a store with the host operator, apply the files, show them until they are ready', [
    'up',
    'up my.yaml --until ready --timeout 2m',
  ])
    .addOption(new Option('--until <state>', 'end once everything is: ready'))
    .action(
      run(async (context, files: readonly string[], options) =>
        (await import('./commands/up.ts')).upCommand(context, files, options as never),
      ),
    );
  command('serve [modules...]', 'serve a store, with the controllers of the modules', [
    'serve',
    'serve operator.mjs --listen unix:./run/api.sock',
  ])
    .addOption(
      new Option('--listen <url>', 'where to listen: unix:PATH or grpc://127.0.0.1:PORT; may be given several times')
        .argParser(several)
        .default([], 'the socket in .steadystate'),
    )
    .action(
      run(async (context, modules: readonly string[], options) =>
        (await import('./commands/serve.ts')).serveCommand(context, modules, options as never),
      ),
    );
  command('get <type> [ids...]', 'show resources', [
    'get stacks',
    'get processes -w',
    'get stack shop -o yaml',
    "get files -l 'app=web' -o jsonpath='{.items[*].metadata.id}'",
  ])
    .addOption(new Option('-o, --output <format>', 'table, wide, yaml, json, name, jsonpath=TEMPLATE or custom-columns=HEADING:.path,…'))
    .option('-A, --all-namespaces', 'of all namespaces')
    .option('-l, --selector <query>', 'by labels: app=web,tier!=db,env in (a,b)')
    .option('-w, --watch', 'and print what changes')
    .option('--sort-by <jsonpath>', 'in the order of a value')
    .option('--show-labels', 'with a column of labels')
    .option('--ignore-not-found', 'ids that are not there are no failure')
    .option('--no-headers', 'without headings')
    .action(
      run(async (context, type: string, ids: readonly string[], options) =>
        (await import('./commands/get.ts')).getCommand(context, type, ids, options as never),
      ),
    );
  command('describe <type> <id>', 'show all of one resource', ['describe stack shop']).action(
    run(async (context, type: string, id: string) => (await import('./commands/describe.ts')).describeCommand(context, type, id)),
  );
  command('types', 'show the types that there are', ['types'])
    .addOption(output)
    .action(run(async (context) => (await import('./commands/types.ts')).typesCommand(context)));
  command('apply', 'create or change what files declare', ['apply -f shop.yaml', 'apply -f folder -f more.yaml --wait', 'apply -f -'])
    .addOption(
      new Option('-f, --filename <path>', 'a file, a folder, or - for standard input; may be given several times')
        .argParser(several)
        .default([], 'none'),
    )
    .option('--wait', 'until everything applied is ready')
    .addOption(new Option('--dry-run [where]', 'check and tell, but write nothing').choices(['client', 'server', 'none']).preset('server'))
    .action(run(async (context, options) => (await import('./commands/apply.ts')).applyCommand(context, options as never)));
  command('delete [type] [ids...]', 'tear down and remove', ['delete stack shop --wait', 'delete -f shop.yaml'])
    .addOption(new Option('-f, --filename <path>', 'what files declare; may be given several times').argParser(several).default([], 'none'))
    .option('--wait', 'until it is gone')
    .option('-l, --selector <query>', 'all with these labels: app=web,tier!=db')
    .option('--all', 'all of the type in the namespace')
    .option('--ignore-not-found', 'what is not there is no failure')
    .action(
      run(async (context, type: string | undefined, ids: readonly string[], options) =>
        (await import('./commands/delete.ts')).deleteCommand(context, type, ids, options as never),
      ),
    );
  command('wait <type> <id>', 'wait until a resource is as asked', [
    'wait stack shop --for=ready --timeout 2m',
    "wait process shop/api --for=jsonpath='{.status.restarts}'=1",
  ])
    .addOption(
      new Option('--for <goal>', 'ready, destroyed (or delete), create, condition=NAME or jsonpath={.path}=value').makeOptionMandatory(),
    )
    .action(
      run(async (context, type: string, id: string, options: GlobalOptions & { readonly for: string }) =>
        (await import('./commands/wait.ts')).waitCommand(context, type, id, options.for),
      ),
    );
  command('watch <type> [id]', 'print every change, a line each', ['watch processes', 'watch stacks -o json --from BOOKMARK'])
    .addOption(output)
    .option('--from <bookmark>', 'go on after a bookmark of an earlier watch -o json')
    .action(
      run(async (context, type: string, id: string | undefined, options) =>
        (await import('./commands/watch.ts')).watchCommand(context, type, id, options as never),
      ),
    );
  command('events', 'show what was recorded of workloads and their children', [
    'events',
    'events --for stack/shop -w',
    'events -A --types Warning -o json',
  ])
    .addOption(output)
    .option('-A, --all-namespaces', 'of all namespaces')
    .option('--for <type/id>', 'only of one resource')
    .option('--types <list>', 'Normal, Warning, or both')
    .option('-w, --watch', 'and print what comes')
    .option('--no-headers', 'without headings')
    .action(run(async (context, options) => (await import('./commands/events.ts')).eventsCommand(context, options as never)));
  command('why <type> <id>', 'why it is not ready, or why it is still there', ['why stack shop'])
    .addOption(output)
    .action(run(async (context, type: string, id: string) => (await import('./commands/why.ts')).whyCommand(context, type, id)));
  command('logs <stack> [service]', 'the output of the services of a stack', ['logs shop', 'logs shop api -f --tail 20'])
    .option('-f, --follow', 'and what comes')
    .option('--tail <lines>', 'only the last lines')
    .action(
      run(async (context, stack: string, service: string | undefined, options) =>
        (await import('./commands/logs.ts')).logsCommand(context, stack, service, options as never),
      ),
    );
  command('restart <stack> <service>', 'restart one service', ['restart shop api']).action(
    run(async (context, stack: string, service: string) => (await import('./commands/restart.ts')).restartCommand(context, stack, service)),
  );
  command('diff', 'show what apply would change; 6 when there is something', ['diff -f shop.yaml'])
    .addOption(new Option('-f, --filename <path>', 'a file, a folder, or - for standard input').argParser(several).default([], 'none'))
    .action(run(async (context, options) => (await import('./commands/diff.ts')).diffCommand(context, options as never)));
  command('plan', 'show the children and phases of what files declare; 6 when something would change', [
    'plan -f shop.yaml',
    'plan -f shop.yaml -o yaml --store memory:',
    'plan -f site.yaml --module operator.mjs',
  ])
    .addOption(new Option('-o, --output <format>', 'table, yaml, json or jsonpath=TEMPLATE'))
    .addOption(new Option('-f, --filename <path>', 'a file, a folder, or - for standard input').argParser(several).default([], 'none'))
    .addOption(
      new Option('--module <file>', 'a module of an operator, as for serve; may be given several times')
        .argParser(several)
        .default([], 'none'),
    )
    .action(run(async (context, options) => (await import('./commands/plan.ts')).planCommand(context, options as never)));
  for (const [name, what] of [
    ['label', 'labels'],
    ['annotate', 'annotations'],
  ] as const) {
    command(`${name} <type> <id> <changes...>`, `set or remove ${what}`, [`${name} stack shop team=web`, `${name} stack shop team-`])
      .option('--overwrite', 'change what is set already')
      .action(
        run(async (context, type: string, id: string, changes: readonly string[], options) =>
          (await import('./commands/label.ts')).setPairsCommand(context, what, type, id, changes, options as never),
        ),
      );
  }
  command('edit <type> <id>', 'change it in your editor', ['edit stack shop']).action(
    run(async (context, type: string, id: string) => (await import('./commands/edit.ts')).editCommand(context, type, id)),
  );
  command('namespaces', 'show the namespaces that there are', ['namespaces'])
    .addOption(output)
    .action(run(async (context) => (await import('./commands/namespaces.ts')).namespacesCommand(context)));
  command('graph', 'controllers with their inputs and outputs, or resources with their children', [
    'graph -o mermaid',
    'graph --resources -o dot',
  ])
    .addOption(new Option('-o, --output <format>', 'dot, mermaid or json'))
    .option('--resources', 'of workloads and children')
    .action(run(async (context, options) => (await import('./commands/graph.ts')).graphCommand(context, options as never)));
  command('release-finalizer <type> <id> <finalizer>', 'take away a finalizer whose holder never comes back', [
    'release-finalizer stack shop old-operator',
  ]).action(
    run(async (context, type: string, id: string, finalizer: string) =>
      (await import('./commands/release-finalizer.ts')).releaseFinalizerCommand(context, type, id, finalizer),
    ),
  );
  command('store <verb> [file]', 'look after the store: check, repair, compact, backup FILE, restore FILE, export [FILE], import FILE', [
    'store check',
    'store backup nightly.db',
    'store compact --keep 10000 --older-than 7d',
    'store restore nightly.db --store sqlite:.steadystate/state.db',
    'store repair --store sqlite:.steadystate/state.db',
    'store export all.yaml',
    'store import all.yaml',
  ])
    .addOption(new Option('-o, --output <format>', 'table or json; of export: yaml, or json for JSON lines'))
    .option('--quick', "check: without SQLite's own look at its pages, for which writers wait")
    .option('--force', 'backup, export: replace a file that is there')
    .option('--keep <events>', 'compact: so many of the newest events stay')
    .option('--older-than <duration>', 'compact: only events older than this go, such as 12h or 7d')
    .action(
      run(async (context, verb: string, file: string | undefined, options) =>
        (await import('./commands/store.ts')).storeCommand(context, verb, file, options as never),
      ),
    );
  command('completion <shell>', 'a script for bash, zsh or fish that completes commands', ['completion bash']).action(
    run(async (context, shell: string) => (await import('./commands/completion.ts')).completionCommand(context, shell)),
  );
  program
    .command('__complete [words...]', { hidden: true })
    .addOption(new Option('--timeout <duration>', 'how long a store may take'))
    .action(
      run(async (context, words: readonly string[]) => (await import('./commands/complete.ts')).completeCommand(context, words, program)),
    );
  command('version', 'show the version', ['version']).action(
    run(async (context) => (await import('./commands/version.ts')).versionCommand(context)),
  );
  return program;
}
