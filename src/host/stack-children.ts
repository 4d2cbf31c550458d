import { posix } from 'node:path';
import { Bytes, digest } from '../resource/index.ts';
import type { Desired } from '../workload/index.ts';
import { childName, desiredChild } from '../workload/index.ts';
import { directoryDefinition, fileDefinition } from './file-definitions.ts';
import { childId, logsFolder, pathStep, restartAnnotation } from './names.ts';
import { expandPorts, portNames } from './port-text.ts';
import type { ProcessInput } from './process-definition.ts';
import { processDefinition } from './process-definition.ts';
import type { ReadySpec } from './shared-schemas.ts';
import type { ServiceSpec, StackSpec } from './stack-definition.ts';
import { isFileWithMode, stackDefinition } from './stack-definition.ts';
import { portTexts } from './stack-issues.ts';

/** A stack with all that its children are computed from. */
export interface StackPlan {
  readonly namespace: string;
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: StackSpec;
  /** Absolute. */
  readonly directory: string;
  readonly ports: Readonly<Record<string, number>>;
}

/** The children of a stack: folders, then files, then processes behind those that they depend on. */
export function stackChildren(plan: StackPlan): readonly Desired[] {
  const folders = folderChildren(plan);
  const children: Desired[] = [...folders.values()];
  const services = Object.entries(plan.spec.services);
  const owners = portOwners(plan.spec);
  for (const [service, spec] of services) {
    const files = fileChildren(plan, spec, folders);
    const ports = [...owners].filter(([, owner]) => owner === service).map(([port]) => port);
    children.push(...files, processChild(plan, service, spec, { files, ports, folders: [nameOf(folders, logsPath(plan))] }));
  }
  return children;
}

/** Every port that a stack names, in the order of its services. */
export function stackPorts(spec: StackSpec): readonly string[] {
  const names = Object.values(spec.services).flatMap((service) => portTexts(service).flatMap(({ text }) => portNames(text)));
  return [...new Set(names)];
}

/**
 * Which service opens a port: the one that it is named after, else the only one that mentions it. Of other ports
 * nobody knows who opens them.
 */
export function portOwners(spec: StackSpec): ReadonlyMap<string, string> {
  const mentions = new Map<string, string[]>();
  for (const [service, declared] of Object.entries(spec.services)) {
    for (const port of new Set(portTexts(declared).flatMap(({ text }) => portNames(text))))
      mentions.set(port, [...(mentions.get(port) ?? []), service]);
  }
  const owners = new Map<string, string>();
  for (const [port, services] of mentions) {
    const named = services.find((service) => port === service || port.startsWith(`${service}-`) || port.startsWith(`${service}_`));
    const owner = named ?? (services.length === 1 ? services[0] : undefined);
    if (owner !== undefined) owners.set(port, owner);
  }
  return owners;
}

/** The file that the output of a service goes to. */
export function outputFileOf(plan: OutputPlace, service: string): string {
  return posix.join(logsPath(plan), `${service}.log`);
}

/** Stacks of one name in two namespaces may live in one directory: their outputs are apart. */
function logsPath({ directory, namespace, name }: OutputPlace): string {
  const own = namespace === stackDefinition.defaultNamespace ? pathStep(name) : `${pathStep(name)}@${pathStep(namespace)}`;
  return posix.join(directory, logsFolder, own);
}

type OutputPlace = Pick<StackPlan, 'directory' | 'namespace' | 'name'>;

/** The folders of a stack by path: its own, those of its files, and that of its output. Each behind the one it lies in. */
function folderChildren(plan: StackPlan): Map<string, Desired> {
  const paths = new Set<string>();
  const add = (path: string): void => {
    if (path !== plan.directory) add(posix.dirname(path));
    paths.add(path);
  };
  add(plan.directory);
  for (const { files = {} } of Object.values(plan.spec.services))
    for (const file of Object.keys(files)) add(posix.dirname(posix.join(plan.directory, file)));
  add(logsPath(plan));
  const children = new Map<string, Desired>();
  for (const path of paths) {
    const id = childId(plan.name, posix.relative(plan.directory, path));
    const child = directoryDefinition.create({ namespace: plan.namespace, id, spec: { path, within: plan.directory } });
    const parent = children.get(posix.dirname(path));
    children.set(path, desiredChild(child, { dependsOn: parent === undefined ? [] : [childName(parent)] }));
  }
  return children;
}

function fileChildren(plan: StackPlan, service: ServiceSpec, folders: ReadonlyMap<string, Desired>): readonly Desired[] {
  return Object.entries(service.files ?? {}).map(([key, value]) => {
    const path = posix.join(plan.directory, key);
    const { content, mode } = fileContent(value);
    const id = childId(plan.name, posix.relative(plan.directory, path));
    const child = fileDefinition.create({
      namespace: plan.namespace,
      id,
      spec: { path, within: plan.directory, content, mode },
    });
    return desiredChild(child, { dependsOn: [nameOf(folders, posix.dirname(path))] });
  });
}

const defaultMode = '0644';

/** Text stays as it is; anything else is written as JSON. */
function fileContent(value: unknown): { readonly content: string; readonly mode: string } {
  if (isFileWithMode(value)) {
    return { content: 'content' in value ? (value.content as string) : jsonText(value.json), mode: value.mode as string };
  }
  return { content: typeof value === 'string' ? value : jsonText(value), mode: defaultMode };
}

function jsonText(value: unknown): string {
  return `${jsonOf(value, '\n')}\n`;
}

/** `JSON.stringify` refuses a bigint; here its digits are a number. */
function jsonOf(value: unknown, newline: string): string {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null || Bytes.is(value)) return JSON.stringify(value);
  const deeper = `${newline}  `;
  const list = Array.isArray(value);
  const parts = list
    ? value.map((item) => jsonOf(item, deeper))
    : Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${jsonOf(item, deeper)}`);
  const [open, close] = list ? '[]' : '{}';
  return parts.length === 0 ? `${open}${close}` : `${open}${deeper}${parts.join(`,${deeper}`)}${newline}${close}`;
}

function processChild(
  plan: StackPlan,
  service: string,
  spec: ServiceSpec,
  behind: { readonly files: readonly Desired[]; readonly folders: readonly string[]; readonly ports: readonly string[] },
): Desired {
  const expand = (text: string): string => expandPorts(text, plan.ports);
  const { restartOn = [], dependsOn = [], environment = {}, ready, restart, stop } = spec;
  const digests = Object.fromEntries(restartOn.map((file) => [file, digest(spec.files?.[file] ?? null)]));
  const ports = Object.fromEntries(behind.ports.flatMap((name) => (plan.ports[name] === undefined ? [] : [[name, plan.ports[name]]])));
  const restartAt = plan.annotations[restartAnnotation(service)];
  const child = processDefinition.create({
    namespace: plan.namespace,
    id: childId(plan.name, service),
    spec: {
      command: spec.command.map(expand),
      directory: plan.directory,
      environment: Object.fromEntries(Object.entries(environment).map(([name, text]) => [name, expand(text)])),
      outputFile: outputFileOf(plan, service),
      ...(ready && { ready: expandReady(ready, expand) }),
      ...(restart && { restart }),
      ...(stop && { stop }),
      ...(Object.keys(ports).length > 0 && { ports }),
      ...(dependsOn.length > 0 && { after: dependsOn.map((other) => childId(plan.name, other)) }),
      ...(restartOn.length > 0 && { restartOn: digests }),
      ...(restartAt !== undefined && { restartAt }),
    } as ProcessInput,
  });
  const processes = dependsOn.map((other) => `${processKind}/${childId(plan.name, other)}`);
  return desiredChild(child, { dependsOn: [...behind.folders, ...behind.files.map(childName), ...processes] });
}

const processKind = processDefinition.type.slice(0, processDefinition.type.indexOf('.'));

function expandReady(ready: ReadySpec, expand: (text: string) => string): ReadySpec {
  const { http, tcp, log, command } = ready;
  return {
    ...ready,
    ...(http !== undefined && { http: expand(http) }),
    ...(tcp !== undefined && { tcp: expand(tcp) }),
    ...(typeof log === 'string' && { log: expand(log) }),
    ...(command !== undefined && { command: command.map(expand) as [string, ...string[]] }),
  };
}

function nameOf(folders: ReadonlyMap<string, Desired>, path: string): string {
  const folder = folders.get(path);
  if (folder === undefined) throw new Error(`no folder ${path} among the children`);
  return childName(folder);
}
