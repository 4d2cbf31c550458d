import type { Command, Option } from 'commander';

/**
 * A command line in the words of this program, for those who come from kubectl: `help COMMAND`, `TYPE/ID` where a type and an id are
 * expected, and switches with a value (`--wait=false`).
 */
export function readHabits(argv: readonly string[], program: Command): readonly string[] {
  const [first = '', ...rest] = argv;
  if (first === 'help') return [...rest.slice(0, 1), '--help'];
  const command = program.commands.find((each) => each.name() === first);
  if (command === undefined || first.startsWith('__')) return argv;
  const words: string[] = [];
  /** Places of what is no option and no value of one. */
  const operands: number[] = [];
  let plain = false;
  for (let index = 0; index < rest.length; index++) {
    const word = rest[index] as string;
    if (plain || word === '-' || !word.startsWith('-')) operands.push(words.push(word) - 1);
    else if (word === '--') plain = words.push(word) > 0;
    else {
      const option = optionOf(command, word);
      const value = option !== undefined && isSwitch(option) ? /^(?:-[a-zA-Z]|--[^=]+)=(true|false)$/.exec(word)?.[1] : undefined;
      if (value === undefined) words.push(word);
      else if (value === 'true') words.push(option?.long ?? word);
      // Its value is the next word, whatever it looks like.
      if (option !== undefined && takesNext(option, word) && index + 1 < rest.length) words.push(rest[++index] as string);
    }
  }
  return [first, ...splitNames(command, words, operands)];
}

function splitNames(command: Command, words: readonly string[], operands: readonly number[]): readonly string[] {
  const [first] = operands;
  const slash = first === undefined ? -1 : (words[first] as string).indexOf('/');
  if (first === undefined || slash < 1) return words;
  const name = command.registeredArguments[0]?.name();
  const type = (words[first] as string).slice(0, slash);
  const ids = words.map((word, index) => (operands.includes(index) && word.startsWith(`${type}/`) ? word.slice(slash + 1) : word));
  // A type has no slash, an id may have some.
  if (name === 'type') return ids.toSpliced(first, 0, type);
  if (name !== 'stack') return words;
  const id = ids[first] as string;
  if (/^stacks?(?:\.|$)/i.test(type)) return words.with(first, id);
  // A service runs as the process STACK/SERVICE.
  const service = id.lastIndexOf('/');
  if (!/^(?:proc|ps|process|processes)(?:\.|$)/i.test(type) || service < 1) return words;
  return words.toSpliced(first, 1, id.slice(0, service), id.slice(service + 1));
}

function optionOf(command: Command, word: string): Option | undefined {
  const long = word.startsWith('--') ? word.split('=', 1)[0] : undefined;
  return command.options.find((option) => (long === undefined ? option.short === word.slice(0, 2) : option.long === long));
}

function isSwitch({ required, optional }: Option): boolean {
  return !required && !optional;
}

function takesNext(option: Option, word: string): boolean {
  return option.required && (word.startsWith('--') ? !word.includes('=') : word.length === 2);
}

const files = 'name files with -f FILE, a folder, or - for standard input';
const down = 'a delete asks, and never forces; what holds something is told by: steadystate why TYPE ID';
const stored = 'the store is named by --store URL';
const noTimes = 'output is kept as the service wrote it, without times; the last lines are shown by --tail';
const own = 'services are processes of this machine; their pids are in: steadystate get processes';

/** What stands here for an option of kubectl's, by its name; for one command, or for all. */
const options: Readonly<Record<string, string | Readonly<Record<string, string>>>> = {
  '--field-selector': "select by labels with -l, or by a value: -o jsonpath='{.items[?(@.spec.size==1)].metadata.id}'",
  '--all': { wait: 'one resource is waited for; all that files declare: steadystate apply -f FILE --wait' },
  '-A': 'one namespace is named by -n',
  '--all-namespaces': 'one namespace is named by -n',
  '-l': 'name each by its id; by labels they are found with: steadystate get TYPE -l QUERY -o name',
  '--selector': 'name each by its id; by labels they are found with: steadystate get TYPE -l QUERY -o name',
  '-f': 'name it: TYPE ID, or TYPE/ID',
  '--filename': 'name it: TYPE ID, or TYPE/ID',
  '-R': 'a folder is read without those in it; name each with another -f',
  '--recursive': 'a folder is read without those in it; name each with another -f',
  '-k': 'render it first, and give it to: steadystate apply -f -',
  '--kustomize': 'render it first, and give it to: steadystate apply -f -',
  '--dry-run': 'what would change is shown by diff -f FILE and plan -f FILE',
  '--server-side': 'apply always compares with what the store has; there is nothing to choose',
  '--force-conflicts': 'what a controller owns is changed by changing what it is made from',
  '--prune': 'what is declared no more is removed with: steadystate delete TYPE ID',
  '--force': { delete: down },
  '--grace-period': down,
  '--now': down,
  '--cascade': 'children of a workload go with it; to keep them, give it the finalizer orphan first',
  '--since': noTimes,
  '--since-time': noTimes,
  '--timestamps': noTimes,
  '-p': { logs: 'earlier runs are in the same output, before the present one' },
  '--previous': 'earlier runs are in the same output, before the present one',
  '-c': { logs: 'name the service behind the stack: steadystate logs STACK SERVICE' },
  '--container': 'name the service behind the stack: steadystate logs STACK SERVICE',
  '--all-containers': 'without a service, all of a stack are shown',
  '--watch-only': 'changes alone are shown by: steadystate watch TYPE',
  '-w': { describe: 'changes are shown by: steadystate get TYPE ID -w' },
  '-L': 'labels are shown by --show-labels, or by -o custom-columns=ID:.metadata.id,APP:.metadata.labels.app',
  '--label-columns': 'labels are shown by --show-labels, or by -o custom-columns=ID:.metadata.id,APP:.metadata.labels.app',
  '--sort-by': { events: 'they are in the order in which they were seen last' },
  '-o': {
    describe: 'a resource as data is shown by: steadystate get TYPE ID -o yaml',
    apply: 'what was written is shown by: steadystate get',
  },
  '--context': stored,
  '--kubeconfig': stored,
  '-s': stored,
  '--server': stored,
};

/** What stands here for a command of kubectl's. */
const commands: Readonly<Record<string, string>> = {
  'api-resources': 'types are shown by: steadystate types',
  'api-versions': 'types are shown by: steadystate types',
  'cluster-info': stored,
  config: stored,
  create: `what is new is made by: steadystate apply; ${files}`,
  replace: `what is there is changed by: steadystate apply; ${files}`,
  patch: 'change it with edit, label, annotate, or apply -f FILE',
  set: 'change it with edit, label, annotate, or apply -f FILE',
  explain: 'types are shown by: steadystate types; a mistake in a file is told with its place by: steadystate diff -f FILE',
  rollout: 'one service is restarted by: steadystate restart STACK SERVICE; the state is told by: steadystate why TYPE ID',
  scale: 'how many there are is declared: change the file, and apply it',
  top: own,
  exec: own,
  attach: own,
  'port-forward': own,
};

/** What to do instead, where commander only says that it does not know a word. `undefined`: nothing better is known. */
export function habitHint(command: string, error: string): string | undefined {
  const [, kind, word = ''] = /^error: (unknown option|unknown command|too many arguments for) '([^'=]*)/.exec(error) ?? [];
  if (kind === 'unknown command') return Object.hasOwn(commands, word) ? commands[word] : undefined;
  if (kind === 'too many arguments for') {
    if (['apply', 'diff', 'plan'].includes(command)) return files;
    return command === 'wait' ? 'one resource is waited for; all that files declare: steadystate apply -f FILE --wait' : undefined;
  }
  // A value may stick to a short option.
  const name = word.startsWith('--') ? word : word.slice(0, 2);
  const hint = kind === undefined || !Object.hasOwn(options, name) ? undefined : options[name];
  return typeof hint === 'string' ? hint : hint?.[command];
}
