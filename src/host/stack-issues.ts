import { posix } from 'node:path';
import { walkDependencies } from '../workload/index.ts';
import { addressOf } from './address.ts';
import { logsFolder } from './names.ts';
import { expandPorts, portNames, portTextProblem } from './port-text.ts';
import type { ReadySpec } from './shared-schemas.ts';
import { suggestion } from './strict-schema.ts';

/** Of more services than these not all are named. */
const namesTold = 100;
/** Who mends these finds the others by the next try. */
const circlesTold = 10;

/** One thing wrong with a stack as a whole. */
export interface StackIssue {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

interface Service {
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string>> | undefined;
  readonly files?: Readonly<Record<string, unknown>> | undefined;
  readonly dependsOn?: readonly string[] | undefined;
  readonly ready?: ReadySpec | undefined;
  readonly restartOn?: readonly string[] | undefined;
}

interface Stack {
  readonly services: Readonly<Record<string, Service>>;
}

/** What the fields of a stack, each right by itself, have wrong together. */
export function stackIssues(stack: Stack): readonly StackIssue[] {
  const services = Object.entries(stack.services);
  return [
    ...services.flatMap(([name, service]) => [
      ...portIssues(name, service),
      ...dependencyIssues(name, service, stack),
      ...restartIssues(name, service),
    ]),
    ...cycleIssues(stack),
    ...fileIssues(services),
  ];
}

/** Every text of a service in which ports are understood, with where it stands. */
export function portTexts(
  service: Pick<Service, 'command' | 'environment' | 'ready'>,
): readonly { readonly path: readonly (string | number)[]; readonly text: string }[] {
  const { command, environment = {}, ready = {} } = service;
  const list = (path: readonly string[], words: readonly string[]) => words.map((text, index) => ({ path: [...path, index], text }));
  const texts: { path: readonly (string | number)[]; text: string }[] = [...list(['command'], command)];
  for (const [name, text] of Object.entries(environment)) texts.push({ path: ['environment', name], text });
  const { http, tcp, log, command: check } = ready as ReadySpec;
  if (http !== undefined) texts.push({ path: ['ready', 'http'], text: http });
  if (tcp !== undefined) texts.push({ path: ['ready', 'tcp'], text: tcp });
  // An expression is not touched: `$` and `{` mean something else there.
  if (typeof log === 'string') texts.push({ path: ['ready', 'log'], text: log });
  if (check !== undefined) texts.push(...list(['ready', 'command'], check).map(({ path, text }) => ({ path, text })));
  return texts;
}

function portIssues(name: string, service: Service): readonly StackIssue[] {
  return portTexts(service).flatMap(({ path, text }) => {
    const message = portTextProblem(text) ?? addressProblem(path, text);
    return message === undefined ? [] : [{ path: ['services', name, ...path], message }];
  });
}

/** What is wrong with the address of a check, whatever its ports will be. */
function addressProblem(path: readonly (string | number)[], text: string): string | undefined {
  const [field, check] = path;
  if (field !== 'ready') return undefined;
  const ports = Object.fromEntries(portNames(text).map((port) => [port, 1]));
  const address = expandPorts(text, ports);
  if (check === 'tcp') return addressOf(address) === undefined ? `${text} is no address; expected host:port, or a port` : undefined;
  if (check === 'http')
    return /^https?:\/\//.test(address) && URL.canParse(address) ? undefined : `expected an http or https URL, found ${text}`;
  return undefined;
}

function dependencyIssues(name: string, service: Service, stack: Stack): readonly StackIssue[] {
  return (service.dependsOn ?? []).flatMap((other, index) => {
    const path = ['services', name, 'dependsOn', index];
    if (other === name) return [{ path, message: 'a service cannot depend on itself; remove this' }];
    if (Object.hasOwn(stack.services, other)) return [];
    const known = Object.keys(stack.services);
    if (known.length > namesTold) return [{ path, message: `there is no service ${other}` }];
    return [{ path, message: `there is no service ${other}${suggestion(other, known)}; services are ${known.join(', ')}` }];
  });
}

/** One issue for each circle, at the service of it that is named first. */
function cycleIssues(stack: Stack): readonly StackIssue[] {
  const issues: StackIssue[] = [];
  const known = (name: string): readonly string[] => (Object.hasOwn(stack.services, name) ? (stack.services[name]?.dependsOn ?? []) : []);
  walkDependencies(Object.keys(stack.services), known, (circle, index) => {
    // That a service depends on itself is told where that stands.
    if (circle.length <= 2 || issues.length >= circlesTold) return;
    issues.push({
      path: ['services', circle.at(-2) as string, 'dependsOn', index],
      message: `services depend on each other in a circle: ${circle.join(' → ')}; remove one of these`,
    });
  });
  return issues;
}

function fileIssues(services: readonly (readonly [string, Service])[]): readonly StackIssue[] {
  const issues: StackIssue[] = [];
  const claims = new Map<string, { service: string; key: string }>();
  for (const [service, { files = {} }] of services) {
    for (const key of Object.keys(files)) {
      const path = ['services', service, 'files', key];
      const problem = filePathProblem(key);
      const normal = posix.normalize(key);
      const other = claims.get(normal);
      if (problem !== undefined) issues.push({ path, message: problem });
      else if (other !== undefined)
        issues.push({ path, message: `${claimText(other, service)} claims ${normal} too; give one of them another path` });
      else claims.set(normal, { service, key });
    }
  }
  for (const [normal, { service, key }] of claims) {
    for (let folder = posix.dirname(normal); folder !== '.'; folder = posix.dirname(folder)) {
      const other = claims.get(folder);
      if (other !== undefined)
        issues.push({
          path: ['services', service, 'files', key],
          message: `needs a folder ${folder}, which ${claimText(other, service)} declares as a file`,
        });
    }
  }
  return issues;
}

function claimText(other: { readonly service: string; readonly key: string }, service: string): string {
  return other.service === service ? `its file ${other.key}` : `the service ${other.service}`;
}

/** Why a path cannot be one of a file below the stack's directory. */
function filePathProblem(path: string): string | undefined {
  if (path === '' || path.includes('\0')) return 'expected a path below directory';
  if (posix.isAbsolute(path)) return `is outside directory: expected a path relative to it, found ${path}`;
  const normal = posix.normalize(path);
  if (normal === '..' || normal.startsWith('../')) return `is outside directory: ${path} leads out of it; remove the ..`;
  if (normal === '.' || normal.endsWith('/')) return `${path} names a folder, not a file`;
  if (normal === logsFolder || normal.startsWith(`${logsFolder}/`))
    return `${logsFolder} holds the output of the services; choose another path`;
  return undefined;
}

function restartIssues(name: string, { restartOn = [], files = {} }: Service): readonly StackIssue[] {
  const known = Object.keys(files);
  return restartOn.flatMap((file, index) => {
    if (Object.hasOwn(files, file)) return [];
    const rest = known.length === 0 ? 'it declares none' : `its files are ${known.join(', ')}`;
    return [
      { path: ['services', name, 'restartOn', index], message: `${file} is no file of this service${suggestion(file, known)}; ${rest}` },
    ];
  });
}
