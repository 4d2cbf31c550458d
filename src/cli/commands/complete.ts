import type { Command, Option } from 'commander';
import { stackDefinition } from '../../host/index.ts';
import type { Resource } from '../../resource/index.ts';
import { compareIds, isNotFoundError, namespaceDefinition, visibleText } from '../../resource/index.ts';
import type { CommandContext, GlobalOptions } from '../context.ts';
import { timeoutMs } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { connect } from '../session.ts';
import { typedPointer } from '../target.ts';
import { TypesLookup } from '../types-lookup.ts';

/** A word that could come next. */
interface Candidate {
  readonly value: string;
  readonly description?: string;
}

/** What could come next: words, or names of files. `open`: more of the word is to come, so no space behind it. */
interface Candidates {
  readonly words: readonly Candidate[];
  readonly files?: boolean;
  readonly open?: boolean;
}

/** A line that was typed so far, taken apart. */
interface Typed {
  readonly command: Command;
  readonly options: GlobalOptions & { readonly for?: string };
  readonly given: readonly string[];
  readonly operands: readonly string[];
  readonly current: string;
}

/** A person waits for the key to do something: how long a store may take, milliseconds. */
const patienceMs = 1_000;
/** More than anybody reads. */
const mostWords = 500;

/**
 * `__complete -- WORD…`, called by the scripts of `completion`: a line for each candidate of the last word, with a tab and
 * a description; `:files` asks for file names, `:open` for no space behind the word. It tells no errors: a key that does
 * nothing is the better answer.
 */
export async function completeCommand(context: CommandContext, words: readonly string[], program: Command): Promise<number> {
  const { io, environment } = context;
  const aborter = new AbortController();
  using _limit = environment.after(timeoutMs(context, patienceMs) ?? patienceMs, () => aborter.abort());
  const late = new Promise<undefined>((resolve) => aborter.signal.addEventListener('abort', () => resolve(undefined)));
  const found = await Promise.race([candidatesOf(context, words, program).catch(() => undefined), late]);
  const current = words.at(-1) ?? '';
  const fitting = (found?.words ?? []).filter(({ value }) => value.startsWith(current) && visibleText(value) === value);
  for (const { value, description = '' } of fitting.slice(0, mostWords)) io.write(`${value}\t${visibleText(description)}\n`);
  if (found?.files === true) io.write(':files\n');
  if (found?.open === true) io.write(':open\n');
  // A store that is still being opened is not waited for.
  return aborter.signal.aborted ? exitCodes.timedOut : exitCodes.ok;
}

async function candidatesOf(context: CommandContext, words: readonly string[], program: Command): Promise<Candidates> {
  const typed = readLine(words, program);
  if ('option' in typed) return valuesOf(context, typed.option, typed.rest);
  const { command, current, given, operands } = typed;
  const children = command.commands.filter((each) => !each.name().startsWith('__'));
  if (current.startsWith('-')) return { words: optionsOf(command, given) };
  if (children.length > 0 && operands.length === 0)
    return { words: children.map((each) => ({ value: each.name(), description: each.description() })) };
  return operandsOf(context, typed);
}

/** Finds the command, what was given to it, and whether the last word is the value of an option. */
function readLine(words: readonly string[], program: Command): Typed | { readonly option: Option; readonly rest: Typed } {
  let command = program;
  const options: Record<string, unknown> = {};
  const given: string[] = [];
  const operands: string[] = [];
  const current = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  const typed = (): Typed => ({ command, options: options as Typed['options'], given, operands, current });
  let open: Option | undefined;
  let plain = false;
  for (const word of before) {
    if (open !== undefined) {
      options[open.attributeName()] = word;
      open = undefined;
    } else if (!plain && word === '--') plain = true;
    else if (!plain && word.startsWith('-') && word !== '-') {
      const [name, value] = splitOption(word);
      const option = command.options.find(({ long, short }) => long === name || short === name);
      given.push(option?.long ?? name);
      if (option === undefined) continue;
      // A value that may be left out is never the next word.
      if (!takesValue(option) || (option.optional && value === undefined)) options[option.attributeName()] = true;
      else if (value === undefined) open = option;
      else options[option.attributeName()] = value;
    } else {
      const next = operands.length === 0 ? command.commands.find((each) => each.name() === word) : undefined;
      if (next === undefined) operands.push(word);
      else command = next;
    }
  }
  if (open !== undefined) return { option: open, rest: typed() };
  const name = current.startsWith('--') && current.includes('=') ? splitAt(current, '=')[0] : undefined;
  const option = command.options.find(({ long }) => long === name);
  if (option !== undefined && takesValue(option)) return { option, rest: typed() };
  return typed();
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional;
}

/** `--name=value`, `-nvalue`, or a name alone. */
function splitOption(word: string): readonly [string, string?] {
  if (word.startsWith('--')) return word.includes('=') ? splitAt(word, '=') : [word];
  return word.length > 2 ? [word.slice(0, 2), word.slice(2)] : [word];
}

function splitAt(text: string, mark: string): readonly [string, string] {
  const place = text.indexOf(mark);
  return [text.slice(0, place), text.slice(place + 1)];
}

function optionsOf(command: Command, given: readonly string[]): readonly Candidate[] {
  return command.options
    .filter(({ long, variadic, parseArg }) => long !== undefined && (variadic || parseArg !== undefined || !given.includes(long)))
    .map(({ long, description }) => ({ value: long as string, description }))
    .concat([{ value: '--help', description: 'what it does, with examples' }]);
}

/** Values of an option; behind `--name=` they carry it along. */
async function valuesOf(context: CommandContext, option: Option, rest: Typed): Promise<Candidates> {
  const front = rest.current.startsWith(`${option.long}=`) ? `${option.long}=` : '';
  const found = await valuesOfOption(context, option.long ?? '', rest, rest.current.slice(front.length));
  return { ...found, words: found.words.map((word) => ({ ...word, value: `${front}${word.value}` })) };
}

const plainWords = (...values: readonly string[]): Candidates => ({ words: values.map((value) => ({ value })) });

async function valuesOfOption(context: CommandContext, option: string, rest: Typed, current: string): Promise<Candidates> {
  switch (option) {
    case '--output': {
      const known: Readonly<Record<string, readonly string[]>> = {
        graph: ['mermaid', 'dot', 'json'],
        watch: ['json'],
        get: ['table', 'wide', 'yaml', 'json', 'name', 'jsonpath=', 'custom-columns='],
        plan: ['yaml', 'json', 'jsonpath='],
        why: ['yaml', 'json', 'jsonpath='],
      };
      return plainWords(...(known[rest.command.name()] ?? ['table', 'wide', 'yaml', 'json', 'name', 'jsonpath=']));
    }
    case '--filename':
    case '--module':
      return { words: [], files: true };
    case '--store':
    case '--listen':
      return { ...plainWords('unix:', 'sqlite:', 'grpc://', 'memory:'), open: true };
    case '--dry-run':
      return plainWords('server', 'client', 'none');
    case '--until':
      return plainWords('ready');
    case '--types':
      return plainWords('Normal', 'Warning');
    case '--namespace':
      return withStore(context, rest, async ({ state }) => ({
        words: (await state.list(namespaceDefinition.kind())).items.map((item) => ({ value: item.metadata.id })),
      }));
    case '--for': {
      if (rest.command.name() !== 'events') return plainWords('ready', 'destroyed', 'create', 'condition=', 'jsonpath=');
      if (current.includes('/')) return namesOf(context, rest, current);
      const types = await withStore(context, rest, (session) => typeNames(context, session, current));
      return { words: types.words.map((word) => ({ ...word, value: `${word.value}/` })), open: true };
    }
    default:
      return { words: [] };
  }
}

async function operandsOf(context: CommandContext, typed: Typed): Promise<Candidates> {
  const { command, operands, current } = typed;
  const declared = command.registeredArguments;
  const last = declared.at(-1);
  const argument = declared[operands.length] ?? (last?.variadic === true ? last : undefined);
  const [type = '', id = ''] = operands;
  switch (argument?.name()) {
    case 'type':
      if (current.includes('/')) return namesOf(context, typed, current);
      return withStore(context, typed, (session) => typeNames(context, session, current));
    case 'id':
    case 'ids':
      return withStore(context, typed, async (session) => {
        const { words } = await idsOf(context, session, typed, type);
        return { words: words.filter(({ value }) => !operands.slice(1).includes(value)) };
      });
    case 'stack':
      return withStore(context, typed, (session) => idsOf(context, session, typed, stackDefinition.type));
    case 'service':
      return withStore(context, typed, async (session) => {
        const stack = await one(context, session, typed, stackDefinition.type, type);
        const services = (stack?.spec as { readonly services?: object } | undefined)?.services ?? {};
        return { words: Object.keys(services).map((value) => ({ value })) };
      });
    case 'finalizer':
      return withStore(context, typed, async (session) => ({
        words: ((await one(context, session, typed, type, id))?.metadata.finalizers ?? []).map((value) => ({ value })),
      }));
    case 'changes':
      return withStore(context, typed, async (session) => {
        const { metadata } = (await one(context, session, typed, type, id)) ?? {};
        const pairs = (command.name() === 'label' ? metadata?.labels : metadata?.annotations) ?? {};
        return {
          words: Object.keys(pairs).flatMap((key) => [
            { value: `${key}=`, description: 'set it' },
            { value: `${key}-`, description: 'remove it' },
          ]),
        };
      });
    case 'verb':
      return plainWords(...(await import('./store.ts')).storeVerbs);
    case 'shell':
      return plainWords('bash', 'zsh', 'fish');
    case undefined:
      return { words: [] };
    default:
      return { words: [], files: true };
  }
}

async function withStore(
  context: CommandContext,
  { options }: Typed,
  look: (session: Session) => Promise<Candidates>,
): Promise<Candidates> {
  const { io, environment } = context;
  await using session = await connect({ store: options.store, io, environment });
  return await look(session);
}

/** Types by the word that people use; whole, once whole ones are being typed, and where several share a word. */
async function typeNames(context: CommandContext, { state }: Session, current: string): Promise<Candidates> {
  const { all } = await TypesLookup.read(state, context.environment);
  const word = ({ displayType }: { readonly displayType: string }): string => displayType.toLowerCase();
  const shared = (each: (typeof all)[number]): boolean => all.filter((other) => word(other) === word(each)).length > 1;
  const whole = current.includes('.') || /^[A-Z]/.test(current);
  const words = all.flatMap((each): readonly Candidate[] => {
    if (whole || shared(each)) return [{ value: each.resourceType, description: each.aliases.join(', ') }];
    // An alias that is being typed is one to complete too.
    const names = current === '' ? [word(each)] : each.allAliases.filter((name) => name === name.toLowerCase() && !name.includes('.'));
    return [...new Set([word(each), ...names])].map((value) => ({ value, description: each.resourceType }));
  });
  return { words: words.sort((left, right) => compareIds(left.value, right.value)) };
}

/** `TYPE/ID`, once the type is typed. */
async function namesOf(context: CommandContext, typed: Typed, current: string): Promise<Candidates> {
  const type = current.slice(0, current.indexOf('/'));
  const ids = await withStore(context, typed, (session) => idsOf(context, session, typed, type));
  return { words: ids.words.map((word) => ({ ...word, value: `${type}/${word.value}` })) };
}

async function idsOf(context: CommandContext, { state }: Session, { options }: Typed, typeName: string): Promise<Candidates> {
  const type = (await TypesLookup.read(state, context.environment)).find(typeName);
  const { items } = await state.list({ namespace: options.namespace ?? type.defaultNamespace, type: type.type });
  return { words: items.map(({ metadata }) => ({ value: metadata.id })) };
}

async function one(
  context: CommandContext,
  { state }: Session,
  { options }: Typed,
  typeName: string,
  id: string,
): Promise<Resource | undefined> {
  try {
    return await state.get(typedPointer(await TypesLookup.read(state, context.environment), typeName, id, options.namespace));
  } catch (error) {
    if (isNotFoundError(error)) return undefined;
    throw error;
  }
}
