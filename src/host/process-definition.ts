import { z } from 'zod';
import type { Readiness, ResourceDefinition } from '../resource/index.ts';
import { defineResource, digest } from '../resource/index.ts';
import { hostGroup } from './names.ts';
import { absolutePath, commandSchema, environmentSchema, readySchema, restartSchema, stopSchema } from './shared-schemas.ts';
import { jsonSchemaOf, readable, strict } from './strict-schema.ts';

const processSchema = strict({
  command: commandSchema,
  /** The working directory. */
  directory: absolutePath,
  environment: environmentSchema,
  /** Output and errors are appended here. */
  outputFile: absolutePath,
  ready: readySchema.optional(),
  restart: restartSchema.optional(),
  stop: stopSchema.optional(),
  /** Ports that it is expected to open, by name: they must be free before it starts. */
  ports: z.record(z.string(), z.number().int().min(1).max(65_535)).optional(),
  /** Ids of processes that must be ready before it starts, other than after a crash. */
  after: z.array(z.string()).optional(),
  /** Digests of files whose change restarts it. */
  restartOn: z.record(z.string(), z.string()).optional(),
  /** Another value asks for one restart. */
  restartAt: z.string().optional(),
});

export type ProcessInput = z.input<typeof processSchema>;
export type ProcessSpec = z.output<typeof processSchema>;

const processStates = ['Waiting', 'Starting', 'Running', 'Stopping', 'BackOff', 'Completed', 'Failed', 'Stopped'] as const;

const exitSchema = strict({
  code: z.number().int().optional(),
  signal: z.string().optional(),
  /** In words; `unknown (adopted)` for a process that was not this program's child. */
  text: z.string(),
  /** RFC 3339. */
  at: z.string(),
});

const processStatusSchema = strict({
  /** The incarnation of the resource. */
  uid: z.string(),
  /** Digest of the spec that this was computed from. */
  observed: z.string(),
  state: z.enum(processStates),
  ready: z.boolean(),
  reason: z.string(),
  message: z.string(),
  /** Restarts after it ended by itself. */
  restarts: z.number().int(),
  pid: z.number().int().optional(),
  /** With pid and bootId the identity of the process; opaque. */
  startTime: z.string().optional(),
  bootId: z.string().optional(),
  /** RFC 3339. */
  startedAt: z.string().optional(),
  /** Digest of all whose change restarts it, as it was started with. */
  restartDigest: z.string().optional(),
  /** The request for a restart that was honoured last. */
  restartAt: z.string().optional(),
  /** Where the output of this run begins. */
  outputStart: z.number().int().optional(),
  outputFile: z.string().optional(),
  lastExit: exitSchema.optional(),
  /** The last line that the last ended run wrote. */
  lastOutput: z.string().optional(),
  /** Wait before the next start, milliseconds. */
  backOffMs: z.number().optional(),
});

export type ProcessState = (typeof processStates)[number];
export type ProcessExitStatus = z.output<typeof exitSchema>;
export type ProcessStatus = z.output<typeof processStatusSchema>;

/** One process of this machine. */
export const processDefinition: ResourceDefinition<ProcessSpec, ProcessInput> = defineResource({
  type: `Processes.${hostGroup}`,
  aliases: ['proc', 'ps'],
  spec: readable(processSchema),
  jsonSchema: jsonSchemaOf(processSchema),
  status: { type: `ProcessStatuses.${hostGroup}` },
  ready: (resource, status) => companionReadiness(digest(resource.spec), status),
  printColumns: [
    { name: 'STATE', jsonPath: '{.status.state}' },
    { name: 'PID', jsonPath: '{.status.pid}' },
    { name: 'RESTARTS', jsonPath: '{.status.restarts}' },
    { name: 'READY', jsonPath: '{.status.ready}' },
    { name: 'AGE', jsonPath: '{.metadata.created}' },
    { name: 'REASON', jsonPath: '{.status.reason}' },
  ],
});

export const processStatusDefinition: ResourceDefinition<ProcessStatus> = defineResource({
  type: `ProcessStatuses.${hostGroup}`,
  spec: readable(processStatusSchema),
  jsonSchema: jsonSchemaOf(processStatusSchema),
  printColumns: [
    { name: 'STATE', jsonPath: '{.spec.state}' },
    { name: 'PID', jsonPath: '{.spec.pid}' },
    { name: 'RESTARTS', jsonPath: '{.spec.restarts}' },
    { name: 'READY', jsonPath: '{.spec.ready}' },
    { name: 'REASON', jsonPath: '{.spec.reason}' },
    { name: 'LAST EXIT', jsonPath: '{.spec.lastExit.text}' },
  ],
});

/** Readiness from a companion that says which spec it was computed from. */
export function companionReadiness(observed: string, status: unknown): Readiness {
  const companion = status as { observed?: string; ready?: boolean; reason?: string; message?: string } | undefined;
  if (companion === undefined) return { status: 'InProgress', reason: 'NoStatus', message: 'its controller has not looked at it yet' };
  if (companion.observed !== observed)
    return { status: 'InProgress', reason: 'NotObserved', message: 'its controller has not seen the present spec yet' };
  const { reason = '', message = '' } = companion;
  // Never Failed: a service that does not come up must not keep others from being taken down.
  return companion.ready === true
    ? { status: 'Current', reason: 'Current', message: '' }
    : { status: 'InProgress', reason: reason === '' ? 'NotReady' : reason, message };
}

/** Digest of what a process is started with: another one is a restart. */
export function restartDigest(spec: ProcessSpec): string {
  const { command, directory, environment, outputFile, restartOn = {} } = spec;
  return digest({ command, directory, environment, outputFile, restartOn });
}
